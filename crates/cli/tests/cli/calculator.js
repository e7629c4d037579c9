// Types each of `choices`, or follows its link, and reports what the page shows of it.
const at = id => document.getElementById(id);
const all = () => Object.fromEntries([...document.querySelectorAll("data")].map(data => [data.dataset.figure, Number(data.value)]));
const report = choices.map((choice, i) => {
    if (choice.link !== undefined) {
        location.hash = choice.link;
        dispatchEvent(new Event("hashchange"));
    } else for (const [name, text] of Object.entries(choice)) {
        at(name).value = text;
        at(name).dispatchEvent(new Event("input"));
    }
    const wrong = [...document.querySelectorAll("[aria-invalid=true]")].map(input => input.id);
    if (wrong.length > 0) {
        const error = wrong.map(name => at(`${name}-error`).textContent).join(" ");
        return { wrong, error, figures: all(), stale: at("stale").checkVisibility() ? at("stale").textContent : null };
    }
    if (at("stale").checkVisibility()) return { wrong: [] };
    const seen = { figures: all(), text: at("results").textContent, link: at("link").getAttribute("href") };
    for (const language of ["rust", "python", "shell"]) seen[language] = at(language).textContent;
    // What somebody sees who follows the link. Browsers refuse to follow very many at once.
    if (i >= 60) return seen;
    at("results").querySelectorAll("data").forEach(data => data.remove());
    location.hash = seen.link;
    dispatchEvent(new Event("hashchange"));
    return { ...seen, followed: all() };
});
document.querySelector("pre").textContent = JSON.stringify(report);
