"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const element = (tag, text, className) => {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
};

// The list of packages: shows those in which every word occurs.
const filter = document.getElementById("filter");
if (filter) {
  const cards = all(".cards li").map((card) => [card, card.textContent.toLowerCase()]);
  const count = document.getElementById("count");
  const show = () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const [card, text] of cards) {
      card.hidden = !words.every((word) => text.includes(word));
      shown += !card.hidden;
    }
    count.textContent = `${shown} of ${cards.length}`;
  };
  filter.addEventListener("input", show);
  show();
}

// A channel: the edges of the entry under the pointer or the keyboard's focus, zoom and search.
for (const section of all("section.channel")) {
  const svg = section.querySelector("svg.channel");
  const graph = section.querySelector(".graph");
  if (!svg) continue;
  const size = [svg.width.baseVal.value, svg.height.baseVal.value];
  let scale = 1;
  const zoom = (next) => {
    scale = Math.min(4, Math.max(0.2, next));
    svg.setAttribute("width", size[0] * scale);
    svg.setAttribute("height", size[1] * scale);
  };
  const actions = {
    in: () => zoom(scale * 1.25),
    out: () => zoom(scale / 1.25),
    reset: () => zoom(1),
    fit: () => zoom(Math.min(1, (graph.clientWidth - 20) / size[0])),
  };
  for (const button of all("button[data-zoom]", section)) {
    button.addEventListener("click", actions[button.dataset.zoom]);
  }
  graph.addEventListener("keydown", (event) => {
    const action = { "+": "in", "=": "in", "-": "out", 0: "reset" }[event.key];
    if (action && !event.ctrlKey && !event.metaKey) {
      actions[action]();
      event.preventDefault();
    }
  });
  graph.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(scale * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
  }, { passive: false });

  const lines = all("[data-rows]", svg).map((line) => [line, line.dataset.rows.split(" ")]);
  const rows = new Map(all(".row", svg).map((row) => [row.dataset.row, row]));
  const look = (at) => {
    svg.classList.toggle("looking", at !== null);
    rows.forEach((row) => row.classList.remove("on"));
    for (const [line, joined] of lines) {
      const isOn = at !== null && joined.includes(at);
      line.classList.toggle("on", isOn);
      if (isOn) joined.forEach((row) => rows.get(row)?.classList.add("on"));
    }
  };
  rows.forEach((row, at) => {
    for (const start of ["mouseenter", "focus"]) row.addEventListener(start, () => look(at));
    for (const end of ["mouseleave", "blur"]) row.addEventListener(end, () => look(null));
  });

  const search = section.querySelector("input[type=search]");
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    let first = null;
    rows.forEach((row) => {
      const isHit = wanted !== "" && row.textContent.toLowerCase().includes(wanted);
      row.classList.toggle("hit", isHit);
      first ??= isHit ? row : null;
    });
    first?.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
}

// "From version X to Y": the hops under the rules of both versions of OLM, as they were computed when the page was made.
const form = document.getElementById("path");
if (form) {
  const channels = JSON.parse(document.getElementById("upgrades").textContent);
  const [channel, from, to] = ["channel", "from", "to"].map((name) => form.elements[name]);
  const options = (select, texts) => {
    select.replaceChildren(...texts.map((text, at) => new Option(text, at)));
  };
  const follow = (entries, next, start, goal) => {
    const hops = [start];
    for (let at = start; at !== goal; ) {
      at = entries[at][next];
      if (at < 0 || hops.includes(at)) return [hops, false];
      hops.push(at);
    }
    return [hops, true];
  };
  const name = (entry) => entry.version || entry.name;
  const answer = () => {
    const { entries } = channels[channel.value];
    const [start, goal] = [Number(from.value), Number(to.value)];
    for (const rules of ["v0", "v1"]) {
      const out = document.getElementById(rules);
      const [hops, arrives] = follow(entries, rules, start, goal);
      const list = element("ol", "", "hops");
      hops.forEach((at) => {
        const item = element("li", name(entries[at]));
        if (entries[at].deprecated) item.append(" ", element("span", "deprecated", "tag warn"));
        list.append(item);
      });
      const steps = hops.length - 1;
      const words = arrives
        ? steps === 0 ? "it is that version" : `${steps} ${steps === 1 ? "hop" : "hops"}`
        : `no upgrade path stops at ${name(entries[goal])}: OLM stays at ${name(entries[hops.at(-1)])}`;
      out.replaceChildren(element("p", words, arrives ? "soft" : "warn"), list);
    }
  };
  const choose = () => {
    const { entries, head } = channels[channel.value];
    options(from, entries.map(name));
    options(to, entries.map(name));
    from.value = entries.length - 1;
    to.value = Math.max(0, head);
    answer();
  };
  options(channel, channels.map((channel) => channel.name));
  channel.value = Math.max(0, channels.findIndex((channel) => channel.default));
  channel.addEventListener("change", choose);
  for (const select of [from, to]) select.addEventListener("change", answer);
  if (channels.length > 0) choose();
  form.hidden = channels.length === 0;
}

// A link to a bundle opens it.
const open = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") {
    target.open = true;
    target.scrollIntoView();
  }
};
addEventListener("hashchange", open);
open();

// The slash goes to the first search.
addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
  const search = document.querySelector("input[type=search]");
  if (event.key === "/" && !isTyping && search) {
    search.focus();
    event.preventDefault();
  }
});
