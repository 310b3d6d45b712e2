// The stylesheet of everything around it, and its keys: JupyterLab must not take `a`, `m` or Shift+Enter from a bench.
const TYPING = "input:not([type=checkbox]):not([type=radio]), textarea, [contenteditable=true]";
const guarded = new WeakSet();

// A field's label and what is wrong with it stand beside its input; screen readers are told which belongs to which.
const unique = () => Math.random().toString(36).slice(2); // each bench of a page has this script of its own
const named = (root) => {
  for (const field of root.querySelectorAll(".wb-field")) {
    const label = field.querySelector(".wb-label");
    const input = field.querySelector("input, textarea, select") ?? field.querySelector(".widget-toggle-buttons");
    if (!label || !input || input.closest(".wb-field") !== field) continue;
    input.setAttribute("aria-label", label.textContent);
    if (input.matches("div")) input.setAttribute("role", "group");
    const wrong = [...field.querySelectorAll(".wb-alert")].find((one) => one.closest(".wb-field") === field);
    if (wrong) {
      wrong.id ||= `wb-wrong-${unique()}`;
      input.setAttribute("aria-describedby", wrong.id);
      input.setAttribute("aria-invalid", "true");
    } else if (input.hasAttribute("aria-invalid")) {
      input.removeAttribute("aria-describedby");
      input.removeAttribute("aria-invalid");
    }
  }
};

const styled = async (model) => {
  const shared = await model.widget_manager.get_model(model.get("shared").slice(10));
  let style = document.getElementById("wb-style");
  if (!style) document.head.append((style = Object.assign(document.createElement("style"), { id: "wb-style" })));
  if (style.textContent !== shared.get("css")) style.textContent = shared.get("css");
};

// What lost the focus went away, was hidden or was turned off: the focus goes to what stands in its place.
const CONTROLS = 'button, input, select, textarea, summary, [tabindex="0"]';
const usable = (node) => node?.isConnected && !node.disabled && node.checkVisibility({ visibilityProperty: true });
const followed = (root) => {
  let last = null;
  let lent = null; // a place for want of a better one, until the next decision is there
  const remember = (node) => {
    last = { node, places: [] };
    for (let place = node; place && place !== root; place = place.parentElement) last.places.push(place);
  };
  if (root.contains(document.activeElement)) remember(document.activeElement); // somebody was faster than this script
  root.addEventListener("focusin", (event) => remember(event.target));
  root.addEventListener("input", () => (lent = null)); // who writes there stays
  const elsewhere = (event) => {
    const has = root.contains(document.activeElement) && document.activeElement.contains(event.target);
    if (!has) last = null; // somebody went there: what they pressed takes the focus itself
    if (!root.isConnected) document.removeEventListener("pointerdown", elsewhere, true);
  };
  document.addEventListener("pointerdown", elsewhere, true);
  return () => {
    const active = document.activeElement;
    const band = [...root.querySelectorAll(".wb-dock .wb-band")].find(usable);
    const waits = root.contains(active) && (active === lent || active.matches('.wb-question, [data-key="answer"]'));
    if (waits && band && last) return band.focus({ preventScroll: true });
    if (!last || usable(last.node) || (active !== document.body && usable(active) && root.contains(active))) return;
    if (active !== document.body && !root.contains(active) && !active.contains(root)) return;
    const first = (place) => usable(place) && [...place.querySelectorAll(CONTROLS)].find(usable);
    const near = last.places.slice(1, 4).map(first).find(Boolean);
    const region = last.places.find((place) => /wb-(region|list|inbox|futures|plan)/.test(place.className));
    const places = [...root.querySelectorAll('[data-key="answer"], .wb-question')].filter(usable).reverse();
    // what was done to the plan is seen in the plan
    const planned = last.places.some((place) => place.matches(".wb-plan, .wb-step-form")) && root.querySelector('.wb-plan [role="option"][tabindex="0"]');
    const next = near || (usable(planned || null) && planned) || band || (region && first(region)) || places[0] || first(root);
    lent = band ? null : next;
    if (next) next.focus({ preventScroll: true });
  };
};

// A bench that became shorter under the person who works on it comes back into the window.
const kept = (root) => {
  const shrank = root.offsetHeight < root.height;
  root.height = root.offsetHeight;
  for (const side of root.querySelectorAll(".wb-region-side, .wb-region-form > *")) // beside what is scrolled they stay, from where their end is seen
    side.style.setProperty("--wb-top", `${Math.min(0, innerHeight - 190 - side.offsetHeight)}px`);
  const box = root.getBoundingClientRect();
  if (shrank && root.contains(document.activeElement) && box.top < 0 && box.bottom < innerHeight / 2) root.scrollIntoView({ block: "start" });
};

// What waits, fails or ends while its bench or table is out of view says so in a corner of the window.
const announced = (root) => {
  let status = root.querySelector(".wb-status")?.textContent;
  const cell = root.closest(".jp-Cell");
  return () => {
    const place = root.querySelector(".wb-status");
    const before = status;
    status = place?.textContent;
    if (!status || !before || status === before || place.querySelector(".wb-going")) return;
    const box = root.getBoundingClientRect();
    if (root.checkVisibility() && box.bottom > 0 && box.top < innerHeight) return;
    const toast = Object.assign(document.createElement("button"), { className: "wb-toast", type: "button" });
    toast.setAttribute("role", "status");
    toast.textContent = [status, root.querySelector(".wb-question")?.textContent].filter(Boolean).join(" · ");
    toast.onclick = () => {
      (root.isConnected ? root : cell)?.scrollIntoView({ block: "start" });
      toast.remove();
    };
    document.body.append(toast);
    setTimeout(() => toast.remove(), 12000);
  };
};

// Without its kernel nothing that is pressed is heard; another kernel knows nothing of this bench.
const GONE = ["dead", "restarting", "autorestarting", "terminating"];
const watched = (root, model) => {
  const kernel = model.widget_manager.kernel;
  const look = () => {
    const cut = root.classList.contains("jupyter-widgets-disconnected");
    if ("dead" in root.dataset || !(cut || kernel?.isDisposed || GONE.includes(kernel?.status))) return;
    root.dataset.dead = model.get("dead");
    for (const control of root.querySelectorAll("button, input:not([data-filter]), select:not([data-sort]), textarea")) control.disabled = true;
  };
  new MutationObserver(look).observe(root, { attributes: true, attributeFilter: ["class"] });
  kernel?.statusChanged?.connect(look);
  kernel?.disposed?.connect(look);
  look();
};

export default {
  render({ model, el }) {
    styled(model);
    const guard = () => {
      const root = el.closest(".wb-root");
      if (!root) return void requestAnimationFrame(guard);
      root.lang = model.get("lang");
      if (guarded.has(root)) return;
      guarded.add(root);
      watched(root, model);
      const [refocus, announce] = [followed(root), announced(root)];
      let asked = false;
      new MutationObserver(() => {
        announce(); // now, for a root may be removed before the next frame
        if (asked) return;
        asked = true;
        requestAnimationFrame(() => {
          asked = false;
          named(root);
          refocus();
          kept(root);
        });
      }).observe(root, { childList: true, subtree: true, attributes: true, attributeFilter: ["style", "disabled"] });
      named(root);
      // Seen at once, whatever Python is at.
      root.addEventListener("click", (event) => {
        const button = event.target.closest?.(".jupyter-button");
        if (!button) return;
        button.setAttribute("aria-busy", "true");
        setTimeout(() => button.removeAttribute("aria-busy"), 1000);
      }, true);
      const kindOf = (event) => {
        const command = event.ctrlKey || event.metaKey;
        if (command && event.key === "Enter") return "primary";
        if (event.key === "Escape") return "escape";
        if (!command || event.key !== "z" || event.target.matches?.(TYPING)) return null;
        return "undo";
      };
      // On the way in, for the text fields of ipywidgets let no key out.
      root.addEventListener("keydown", (event) => {
        const kind = kindOf(event);
        if (!kind) return;
        event.preventDefault();
        model.send({ kind, key: "" });
      }, true);
      // What lies over the bench goes when something else is pressed.
      root.addEventListener("pointerdown", (event) => {
        for (const over of root.querySelectorAll(".wb-over[open]")) if (!over.contains(event.target)) over.open = false;
      });
      const help = (event) => {
        if (!root.isConnected) return document.removeEventListener("keydown", help);
        const box = root.getBoundingClientRect();
        if (event.key !== "?" || event.defaultPrevented || event.target.closest?.(TYPING) || box.bottom < 0 || box.top > innerHeight) return;
        const keys = root.querySelector('[data-fold="keys"]');
        if (!keys?.checkVisibility()) return;
        keys.open = !keys.open;
        event.preventDefault(); // the first bench in the window has it
      };
      document.addEventListener("keydown", help);
      root.addEventListener("keydown", help);
      root.addEventListener("keydown", (event) => {
        if (!(event.ctrlKey || event.metaKey) || kindOf(event)) event.stopPropagation();
      });
    };
    guard();
  },
};
