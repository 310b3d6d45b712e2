// Every control has a name that a screen reader can say: the browser's own computation, by label, text or attribute.
() => [...document.querySelectorAll('.wb-root :is(button, input, select, textarea, [role=option])')]
    .filter(e => e.checkVisibility() && !(e.ariaLabel || e.innerText?.trim() || e.title || e.placeholder?.trim()
        || [...(e.labels ?? [])].some(l => l.innerText.trim())
        || document.getElementById(e.getAttribute('aria-labelledby') ?? '')?.innerText.trim()))
    .map(e => e.outerHTML.slice(0, 200))
