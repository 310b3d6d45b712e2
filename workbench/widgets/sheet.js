// The stylesheet of everything around it, and its keys: JupyterLab must not take `a`, `m` or Shift+Enter from a bench.
const TYPING = "input:not([type=checkbox]):not([type=radio]), textarea, [contenteditable=true]";
const guarded = new WeakSet();

export default {
  render({ model, el }) {
    const guard = () => {
      const root = el.closest(".wb-root");
      if (!root) return void requestAnimationFrame(guard);
      root.lang = model.get("lang");
      if (guarded.has(root)) return;
      guarded.add(root);
      root.addEventListener("keydown", (event) => {
        const command = event.ctrlKey || event.metaKey;
        const typing = event.target.matches?.(TYPING);
        const kind =
          command && event.key === "Enter" ? "primary"
          : event.key === "Escape" ? "escape"
          : command && !typing && event.key.toLowerCase() === "z" ? (event.shiftKey ? "redo" : "undo")
          : null;
        if (kind) {
          event.preventDefault();
          model.send({ kind, key: "" });
        }
        if (!command || kind) event.stopPropagation();
      });
    };
    guard();
  },
};
