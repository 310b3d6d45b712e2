// Shows markup from Python and tells what was chosen in it. One of these serves every list, graph and table of the bench.
const OPTIONS = '[data-key][role="option"], [data-key][role="treeitem"], [data-key][role="row"][aria-selected]';

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export default {
  render({ model, el }) {
    const root = document.createElement("div");
    root.className = "wb-pick";
    el.appendChild(root);
    const byKey = (key, within = root) => within.querySelector(`[data-key="${CSS.escape(key)}"]`);
    const options = () => [...root.querySelectorAll(OPTIONS)];
    const tell = (kind, key = "") => model.send({ kind, key });

    const rove = () => {
      const all = options();
      const held = all.find((o) => o === document.activeElement) ?? all.find((o) => o.getAttribute("aria-selected") === "true") ?? all[0];
      for (const option of all) option.tabIndex = option === held ? 0 : -1;
    };
    const keeping = (change) => {
      const active = root.contains(document.activeElement) ? document.activeElement : null;
      const key = active?.closest("[data-key]")?.dataset.key;
      const doing = active?.dataset.do;
      const scrolled = [...root.querySelectorAll("[data-scroll]")].map((e) => [e.dataset.scroll, e.scrollTop, e.scrollLeft]);
      const opened = new Map([...root.querySelectorAll("details[data-fold]")].map((d) => [d.dataset.fold, d.open]));
      const fields = [...root.querySelectorAll('[data-field="kept"]')].map((f) => [f.closest("[data-key]").dataset.key, f]);
      change();
      // what is being typed in a row stays as it is, the place of the cursor too
      for (const [of, field] of fields) byKey(of)?.querySelector('[data-field="kept"]')?.replaceWith(field);
      if (active?.isConnected) active.focus({ preventScroll: true });
      for (const [name, top, left] of scrolled) {
        const same = root.querySelector(`[data-scroll="${CSS.escape(name)}"]`);
        if (same) [same.scrollTop, same.scrollLeft] = [top, left];
      }
      for (const d of root.querySelectorAll("details[data-fold]")) if (opened.has(d.dataset.fold)) d.open = opened.get(d.dataset.fold);
      rove();
      if (active && !root.contains(document.activeElement)) {
        const row = key === undefined ? root : byKey(key);
        const buttons = [...(row ?? root).querySelectorAll("[data-do]")];
        const again = doing ? (buttons.find((b) => b.dataset.do === doing) ?? buttons[0]) : row;
        again?.focus({ preventScroll: true });
      }
    };
    // Rows that do not hold what is typed are hidden; the words of the question are marked without touching the text.
    let typed = "";
    let order = "place";
    const marked = (text, words) => {
      const found = [];
      const low = text.data.toLowerCase();
      for (const word of words) {
        for (let at = low.indexOf(word); at >= 0; at = low.indexOf(word, at + word.length)) {
          const latin = /[a-z0-9]/.test(word);
          if (latin && /[a-z0-9]/.test(low[at - 1] ?? "")) continue; // inside a word
          let end = at + word.length;
          while (latin && /[a-z0-9]/.test(low[end] ?? "")) end++; // to the end of the word
          if (!typed.toLowerCase().includes(word) && !/^(e?s|e?d|ing)?$/.test(low.slice(at + word.length, end))) continue; // as "moss" in "mossy"
          const range = new Range();
          range.setStart(text, at);
          range.setEnd(text, end);
          found.push(range);
        }
      }
      return found;
    };
    const filter = () => {
      const field = root.querySelector("[data-filter]");
      if (!field) return;
      if (field.value !== typed) field.value = typed;
      const wanted = typed.toLowerCase().split(/\s+/).filter(Boolean);
      const rows = options();
      const select = root.querySelector("[data-sort]");
      if (select && select.value !== order) select.value = order;
      const before = (a, b) => (order === "score" || order === "place" ? a - b : a.localeCompare(b));
      const sorted = select ? rows.toSorted((a, b) => before(a.dataset[order], b.dataset[order]) || a.dataset.place - b.dataset.place) : rows;
      if (sorted.some((row, at) => row !== rows[at])) for (const row of sorted) row.parentElement.append(row);
      const fits = (row) => wanted.every((word) => row.textContent.toLowerCase().includes(word));
      for (const row of rows) row.hidden = !fits(row);
      for (const node of root.querySelectorAll(".wb-entity")) {
        node.classList.toggle("wb-off", !fits(node));
        node.classList.toggle("wb-hit", wanted.length > 0 && fits(node));
      }
      if (!globalThis.CSS?.highlights) return;
      const words = [...wanted, ...(root.querySelector("[data-words]")?.dataset.words ?? "").split(" ").filter(Boolean)];
      const own = (CSS.highlights.get("wb-words") ?? new Highlight());
      for (const range of own) if (!range.startContainer.isConnected || root.contains(range.startContainer)) own.delete(range);
      for (const place of root.querySelectorAll("[data-text]")) {
        const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) for (const range of marked(walker.currentNode, words)) own.add(range);
      }
      CSS.highlights.set("wb-words", own);
    };
    root.addEventListener("input", (event) => {
      if (event.target.matches("[data-filter]")) typed = event.target.value;
      else if (event.target.matches("[data-sort]")) order = event.target.value;
      else return;
      filter();
    });

    // A picture takes the width that it has; Ctrl and the wheel, or + and -, make it larger, and it is pulled.
    const zoomed = new Map();
    let pulled = false;
    const zooms = () => {
      for (const svg of root.querySelectorAll("svg[data-zoom]")) {
        const name = svg.getAttribute("aria-label") ?? "";
        const whole = svg.viewBox.baseVal;
        const [wide, high] = [whole.width, whole.height];
        svg.tabIndex = 0;
        const see = (box) => {
          zoomed.set(name, box);
          svg.setAttribute("viewBox", box.join(" "));
        };
        const by = (factor, x = 0.5, y = 0.5) => {
          const [left, top, w, h] = zoomed.get(name) ?? [0, 0, wide, high];
          const w2 = Math.min(wide, Math.max(wide / 8, w * factor));
          const h2 = (w2 * high) / wide;
          see([left + (w - w2) * x, top + (h - h2) * y, w2, h2]);
        };
        if (zoomed.has(name)) see(zoomed.get(name));
        for (const button of root.querySelectorAll("[data-zoom-by]")) {
          button.onclick = () => (Number(button.dataset.zoomBy) ? by(Number(button.dataset.zoomBy)) : see([0, 0, wide, high]));
        }
        svg.addEventListener("wheel", (event) => {
          if (!event.ctrlKey && !event.metaKey) return;
          event.preventDefault();
          const box = svg.getBoundingClientRect();
          by(event.deltaY > 0 ? 1.2 : 1 / 1.2, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
        }, { passive: false });
        svg.addEventListener("keydown", (event) => {
          if (event.key === "+" || event.key === "=") by(1 / 1.2);
          else if (event.key === "-") by(1.2);
          else if (event.key === "0") see([0, 0, wide, high]);
          else if (event.target === svg && ARROWS[event.key]) {
            const [left, top, w, h] = zoomed.get(name) ?? [0, 0, wide, high];
            see([left + (ARROWS[event.key][0] * w) / 8, top + (ARROWS[event.key][1] * h) / 8, w, h]);
          } else return;
          event.preventDefault();
        });
        svg.addEventListener("pointermove", (event) => {
          if (event.buttons !== 1) return;
          pulled = true;
          const [left, top, w, h] = zoomed.get(name) ?? [0, 0, wide, high];
          const scale = w / svg.getBoundingClientRect().width;
          see([left - event.movementX * scale, top - event.movementY * scale, w, h]);
        });
      }
    };
    // The relations of what is pointed at, focused or chosen are in front, with their words.
    const light = (at) => {
      const graph = root.querySelector(".wb-entity")?.ownerSVGElement;
      if (!graph) return;
      const place = at?.closest(".wb-entity, .wb-relation") ?? graph.querySelector('[aria-selected="true"]');
      const { key, from, to } = place?.dataset ?? {};
      graph.classList.toggle("wb-lighting", Boolean(place));
      for (const line of graph.querySelectorAll(".wb-relation")) {
        const own = line.dataset;
        line.classList.toggle("wb-lit", key === undefined ? own.from === from && own.to === to : [own.from, own.to].includes(key));
      }
    };
    root.addEventListener("pointerover", (event) => event.buttons || light(event.target));
    root.addEventListener("pointerleave", () => light(null));
    root.addEventListener("focusin", (event) => light(event.target));
    // A row may be asked for before it is there. Nobody is taken to a bench that they do not look at.
    let wanted = null;
    const reveal = () => {
      const row = wanted === null ? null : byKey(wanted);
      if (!row) return;
      const key = wanted;
      wanted = null;
      const place = row.querySelector("mark") ?? row;
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      const go = () => {
        const root = row.closest(".wb-root");
        if (!root) {
          wanted ??= key; // drawn again meanwhile
          return reveal();
        }
        const box = place.getBoundingClientRect();
        const bench = root.getBoundingClientRect();
        const dock = root.querySelector(".wb-dock"); // hidden once all is decided
        const floor = dock?.checkVisibility() ? Math.min(dock.getBoundingClientRect().top, innerHeight) : innerHeight;
        if (bench.bottom < 0 || bench.top > innerHeight || (box.top > 110 && Math.min(box.bottom, box.top + 160) < floor)) return;
        const whole = box.top - bench.top < innerHeight / 2 ? root : place; // the head comes to the same place each time
        whole.scrollIntoView({ block: whole === root || box.height > innerHeight / 2 ? "start" : "center", behavior: calm ? "auto" : "smooth" });
      };
      requestAnimationFrame(() => requestAnimationFrame(go));
    };
    let shown = null;
    const redraw = () => {
      if (model.get("html") === shown) return;
      shown = model.get("html");
      keeping(() => {
        root.innerHTML = shown;
      });
      filter();
      zooms();
      light(null);
      reveal();
    };
    const replace = (within, rows) => {
      for (const [key, html] of Object.entries(rows)) {
        const row = byKey(key, within);
        if (row) row.outerHTML = html;
      }
    };
    // The model keeps the rows too: another view begins with it, and a notebook is saved with it.
    const patch = (rows) => {
      keeping(() => replace(root, rows));
      filter();
      const whole = document.createElement("template");
      whole.innerHTML = model.get("html");
      replace(whole.content, rows);
      shown = whole.innerHTML;
      model.set("html", shown);
    };
    const choose = (option) => {
      for (const other of options()) other.setAttribute("aria-selected", String(other === option));
      option.focus({ preventScroll: true });
      rove();
      tell("choose", option.dataset.key);
    };
    // Seen at once, whatever Python is at; what it sends next takes the place of the button.
    const acknowledge = (button) => {
      button.setAttribute("aria-busy", "true");
      setTimeout(() => button.removeAttribute("aria-busy"), 1000);
    };
    // The field that a problem is with, once its form has come.
    const mend = (tries) => {
      const at = root.closest(".wb-root")?.querySelector(".wb-step-form .wb-wrong :is(input, textarea, select)");
      if (at?.checkVisibility()) at.focus();
      else if (tries) setTimeout(mend, 100, tries - 1);
    };
    const press = (target) => {
      if (target.closest("a[href], summary, [data-field]")) return true; // a link only goes where it leads, a fold only opens
      const doing = target.closest("[data-do]");
      if (doing && root.contains(doing)) {
        if (!doing.disabled) {
          acknowledge(doing);
          if (doing.dataset.do === "choose") setTimeout(mend, 150, 20);
          const field = doing.parentElement.querySelector(":scope > [data-field]"); // what is typed goes with its button
          tell(field ? `${doing.dataset.do}:${field.value}` : doing.dataset.do, doing.dataset.of ?? doing.closest("[data-key]")?.dataset.key ?? "");
        }
        return true;
      }
      const option = target.closest(OPTIONS);
      if (option && root.contains(option)) choose(option);
      return Boolean(option);
    };

    root.addEventListener("click", (event) => {
      if (!pulled && (!getSelection()?.toString() || event.target.closest("[data-do]"))) press(event.target);
    });
    root.addEventListener("toggle", (event) => event.target.open && event.target.matches(".wb-rest") && root.querySelector(".wb-unused")?.scrollIntoView({ block: "center" }), true);
    root.addEventListener("toggle", (event) => event.target.open && event.target.querySelector(":scope > * > [data-field]")?.focus(), true);
    root.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.matches("[data-filter]")) return root.querySelector(".wb-hit")?.focus();
      if (event.key === "Enter" && event.target.matches('[data-field=""]') && !event.isComposing) press(event.target.parentElement.querySelector("[data-do]"));
      const option = event.target.closest(OPTIONS);
      if (!option || event.target !== option) return;
      const all = options().filter((option) => option.checkVisibility());
      const at = all.indexOf(option);
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (step) {
        all[Math.min(Math.max(at + step, 0), all.length - 1)].focus();
      } else if (event.key === "Home" || event.key === "End") {
        all.at(event.key === "Home" ? 0 : -1).focus();
      } else if (event.key === "Enter" || event.key === " ") {
        if (event.ctrlKey || event.metaKey) return;
        choose(option);
      } else if (event.key === "Delete") {
        tell("remove", option.dataset.key);
      } else return;
      event.preventDefault();
      rove();
    });

    // Between press and release nothing is drawn anew: a click on what went away meanwhile would be lost.
    let waiting = null;
    const settled = (change) => (given) => (waiting ? waiting.push(() => change(given)) : change(given));
    const release = () =>
      setTimeout(() => {
        const due = waiting ?? [];
        waiting = null;
        for (const change of due) change();
      });
    const released = new AbortController();
    root.addEventListener("pointerdown", () => {
      pulled = false;
      waiting ??= [];
    });
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, release, { signal: released.signal });

    const heard = settled((message) => {
      if (message.rows) patch(message.rows);
      if (message.reveal !== undefined) {
        wanted = message.reveal;
        reveal();
      }
    });
    const changed = settled(redraw);
    model.on("change:html", changed);
    model.on("msg:custom", heard);
    redraw();
    return () => {
      released.abort();
      model.off("change:html", changed);
      model.off("msg:custom", heard);
    };
  },
};
