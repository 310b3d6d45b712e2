// The stylesheet of everything around it, and its keys: JupyterLab must not take `a`, `m` or Shift+Enter from a bench.
const TYPING = "input:not([type=checkbox]):not([type=radio]), textarea, [contenteditable=true]";
const guarded = new WeakSet();

// A field's label and what is wrong with it stand beside its input; screen readers are told which belongs to which.
let count = 0;
const named = (root) => {
  for (const field of root.querySelectorAll(".wb-field")) {
    const label = field.querySelector(".wb-label");
    const input = field.querySelector("input, textarea, select") ?? field.querySelector(".widget-toggle-buttons");
    if (!label || !input || input.closest(".wb-field") !== field) continue;
    label.id ||= `wb-label-${++count}`;
    if (!input.hasAttribute("aria-labelledby")) input.setAttribute("aria-labelledby", label.id);
    if (input.matches("div")) input.setAttribute("role", "group");
    const wrong = [...field.querySelectorAll(".wb-alert")].find((one) => one.closest(".wb-field") === field);
    if (wrong) {
      wrong.id ||= `wb-wrong-${++count}`;
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

export default {
  render({ model, el }) {
    styled(model);
    const guard = () => {
      const root = el.closest(".wb-root");
      if (!root) return void requestAnimationFrame(guard);
      root.lang = model.get("lang");
      if (guarded.has(root)) return;
      guarded.add(root);
      let asked = false;
      new MutationObserver(() => {
        if (asked) return;
        asked = true;
        requestAnimationFrame(() => {
          asked = false;
          named(root);
        });
      }).observe(root, { childList: true, subtree: true });
      named(root);
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
      root.addEventListener("keydown", (event) => {
        if (!(event.ctrlKey || event.metaKey) || kindOf(event)) event.stopPropagation();
      });
    };
    guard();
  },
};
