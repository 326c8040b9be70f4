// Keeps a page as the daemon is: swaps the parts that changed, and counts time on the daemon's clock.
"use strict";
(() => {
  const body = document.body;
  const live = document.getElementById("live");
  const speed = Number(body.dataset.speed) || 1;
  let version = body.dataset.version;
  let base = Date.parse(body.dataset.now);
  let loaded = performance.now();

  const now = () => base + (performance.now() - loaded) * speed;

  function span(milliseconds) {
    const s = Math.max(0, Math.round(milliseconds / 1000));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
    return `${Math.floor(s / 86400)} days`;
  }

  function tick() {
    const at = now();
    for (const time of document.querySelectorAll("main time")) {
      if (!time.title) time.title = time.textContent;
      const lasting = time.closest(".since");
      if (lasting && lasting.firstChild !== time) lasting.firstChild.data = "for ";
      const passed = span(at - Date.parse(time.dateTime));
      const text = lasting ? passed : `${passed} ago`;
      if (time.textContent !== text) time.textContent = text;
    }
  }

  function filter() {
    const field = document.getElementById("filter");
    if (!field) return;
    const wanted = field.value.trim().toLowerCase();
    for (const row of document.querySelectorAll("#clusters > tr")) {
      row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
    }
  }

  // What the reader has opened, focused and typed outlives the swap.
  function swap(element, html) {
    const open = new Map([...element.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
    const scrolled = [...element.querySelectorAll(".scroll, .picture")].map((s) => s.scrollLeft);
    const active = element.contains(document.activeElement) ? document.activeElement : null;
    const link = active?.getAttribute("href");
    const focus = active?.id ? `#${CSS.escape(active.id)}` : link ? `a[href="${CSS.escape(link)}"]` : null;
    const typed = document.getElementById("filter")?.value;
    element.innerHTML = html;
    for (const details of element.querySelectorAll("details[id]")) {
      if (open.has(details.id)) details.open = open.get(details.id);
    }
    [...element.querySelectorAll(".scroll, .picture")].forEach((s, index) => { s.scrollLeft = scrolled[index] ?? 0; });
    const field = document.getElementById("filter");
    if (field && typed !== undefined) field.value = typed;
    if (focus) element.querySelector(focus)?.focus({ preventScroll: true });
  }

  function seen(message) {
    version = message.version;
    base = Date.parse(message.now);
    loaded = performance.now();
    document.title = `${message.title} · Fleetwright`;
  }

  function state(name, text) {
    if (live.dataset.state === name) return;
    live.dataset.state = name;
    live.textContent = text;
  }

  function follow() {
    const page = encodeURIComponent(location.pathname);
    const source = new EventSource(`/events?page=${page}&since=${version}`);
    source.addEventListener("open", () => state("live", "live"));
    source.addEventListener("parts", (event) => {
      const message = JSON.parse(event.data);
      seen(message);
      for (const part of message.parts) {
        const element = document.getElementById(part.id);
        if (!element) continue;
        swap(element, part.html);
        element.classList.remove("changed");
        void element.offsetWidth;
        element.classList.add("changed");
      }
      tick();
      filter();
    });
    source.addEventListener("whole", (event) => {
      const message = JSON.parse(event.data);
      seen(message);
      swap(document.getElementById("main"), message.main);
      tick();
      filter();
    });
    source.addEventListener("gone", () => {
      source.close();
      state("gone", "gone");
      location.assign("/");
    });
    source.addEventListener("error", () => {
      state("lost", "connection lost, trying again");
      // The browser tries again by itself unless it was refused; then its number may be of an earlier life.
      if (source.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
    });
  }

  document.addEventListener("input", (event) => { if (event.target.id === "filter") filter(); });
  // A link into a closed part opens what it points at.
  function reveal() {
    const target = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    const first = target?.querySelector(":scope > details");
    if (first) first.open = true;
  }
  addEventListener("hashchange", reveal);
  reveal();
  tick();
  setInterval(tick, 1000);
  follow();
})();
