// What stands wider than the bench.
() => [...document.querySelectorAll('.wb-root')].flatMap(root => {
    const right = root.getBoundingClientRect().right + 1;
    const clipped = (e) => e.closest('[data-scroll]') || getComputedStyle(e).overflowX !== 'visible';
    const hidden = (e) => { for (; e && e !== root; e = e.parentElement) if (clipped(e)) return true; return false; };
    return [...root.querySelectorAll('*')].filter(e => e.checkVisibility() && !hidden(e)
        && e.getBoundingClientRect().right > right).map(
            e => `${e.tagName} ${e.className}: ${e.innerText?.slice(0, 60)}`)
})
