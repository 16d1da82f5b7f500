// Behaviour of the report's pages: navigation, tables, matrices, figures that fit the width, downloads.
(() => {
  "use strict";
  const DARK = JSON.parse(document.getElementById("dark").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const dataOf = element => JSON.parse(element.querySelector(":scope > script.data").textContent);
  const titled = name => name.replaceAll("_", " ");

  // Units: the same as in swflow/report/units.py.
  const grouped = (value, digits = 0) =>
    value.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits});
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  function duration(seconds) {
    const sign = seconds < 0 ? "−" : "", rest = Math.abs(seconds);
    if (rest < 60) return `${sign}${Number(rest.toPrecision(3))} s`;
    if (rest >= 8640000) return `${sign}${grouped(rest / 86400)} d`;
    const place = UNITS.findIndex(([size]) => rest >= size);
    const [size, unit] = UNITS[place], [small, below] = UNITS[place + 1];
    const parts = Math.round(rest / small), each = size / small, whole = Math.floor(parts / each), part = parts % each;
    return `${sign}${grouped(whole)} ${unit}` + (part ? ` ${part} ${below}` : "");
  }
  function number(value) {
    if (Number.isInteger(value) || Math.abs(value) >= 1000) return grouped(value);
    return Math.abs(value) < 10 ? grouped(value, 3) : grouped(value, 1);
  }
  function written(kind, value) {
    if (value === null || value === undefined) return "";
    if (typeof value !== "number") return String(value);
    if (kind === "seconds") return duration(value);
    if (kind === "percent") return `${grouped(100 * value, 1)} %`;
    return kind === "integer" ? grouped(value) : number(value);
  }
  const exact = (kind, value) =>
    kind === "seconds" && typeof value === "number" ? `${value.toLocaleString("en-US", {maximumFractionDigits: 3})} s` : "";

  function say(words) {
    const status = document.getElementById("status");
    status.textContent = words;
    status.classList.add("shown");
    clearTimeout(say.timer);
    say.timer = setTimeout(() => status.classList.remove("shown"), 1800);
  }
  function saved(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  function element(name, text, more = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    return Object.assign(made, more);
  }

  // Tables
  // Unknown values are last in both directions.
  function compared(a, b, sign) {
    if (a === b) return 0;
    if (a === null) return 1;
    if (b === null) return -1;
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1);
  }
  // A recipe that is too long leaves out steps in the middle: the last ones tell it from others.
  function recipe(text, most) {
    if (text.length <= most || !/^[^\s+]+\+\S+$/.test(text)) return text;
    const [log, ...steps] = text.split("+");
    let end = steps.pop();
    while (steps.length && `${log}+…+${steps.at(-1)}+${end}`.length <= most) end = `${steps.pop()}+${end}`;
    if (!steps.length) return text;
    return `${log}+…+${end}`.length <= most ? `${log}+…+${end}` : `…+${end}`;
  }
  const widest = () => innerWidth < 700 ? 34 : 38;
  // A table is built in portions, because some have tens of thousands of rows.
  const PORTION = 200, MOST_PRINTED = 1000;
  function buildTable(block) {
    const {title, columns, rows} = block.about, scroll = block.querySelector(".scroll");
    const table = element("table"), head = element("tr"), body = element("tbody");
    table.append(element("caption", title, {className: "hidden"}), element("thead"), body);
    table.tHead.append(head);
    scroll.replaceChildren(table);
    let sorted = null, shown = rows, built = 0;
    const classOf = column => column.kind !== "text" ? "number" : column.long ? "long" : "";
    function cellOf(value, column, place) {
      const text = written(column.kind, value), short = column.kind === "text" && !column.long ? recipe(text, widest()) : text;
      const cell = element(place ? "td" : "th", short, {className: classOf(column)});
      if (!place) cell.scope = "row";
      if (column.kind === "seconds") cell.title = exact(column.kind, value);
      else if (short !== text) cell.title = text;
      return cell;
    }
    block.buildMore = (most = PORTION) => {
      for (const row of shown.slice(built, built + most)) {
        const line = element("tr");
        line.append(...row.map((value, place) => cellOf(value, columns[place], place)));
        body.append(line);
      }
      built = Math.min(shown.length, built + most);
      const rest = shown.length - built;
      block.querySelector(".rest").textContent = rest ? `${grouped(rest)} more rows: scroll, filter, or save the CSV.` : "";
    };
    function show() {
      const words = block.querySelector(".filter").value.toLowerCase().split(/\s+/).filter(Boolean);
      shown = rows.filter(row => { const text = row.join("\n").toLowerCase(); return words.every(word => text.includes(word)); });
      if (sorted) shown = [...shown].sort((a, b) => compared(a[sorted.place], b[sorted.place], sorted.sign));
      block.shown = shown;
      body.replaceChildren();
      built = 0;
      block.buildMore();
      if (!shown.length) {
        body.append(element("tr"));
        body.firstChild.append(element("td", "No row contains this text.", {colSpan: columns.length, className: "none"}));
      }
    }
    columns.forEach((column, place) => {
      const cell = element("th", undefined, {scope: "col", className: classOf(column), title: column.name});
      const button = element("button", titled(column.name), {type: "button"});
      button.addEventListener("click", () => {
        const sign = sorted && sorted.place === place ? -sorted.sign : 1;
        sorted = {place, sign};
        for (const other of head.children) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        show();
      });
      cell.append(button);
      head.append(cell);
    });
    scroll.addEventListener("scroll", () => {
      if (built < shown.length && scroll.scrollTop + scroll.clientHeight > scroll.scrollHeight - 400) block.buildMore();
    });
    block.querySelector(".filter").addEventListener("input", show);
    show();
    faded(scroll);
  }
  function csvOf(columns, rows) {
    const cell = value => value === null ? "" : /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value;
    return [columns.map(column => column.name), ...rows].map(row => row.map(cell).join(",")).join("\n") + "\n";
  }
  function wireTable(block) {
    block.about = dataOf(block);
    const {name, columns, rows} = block.about;
    block.querySelector("button.csv").addEventListener("click", () => {
      const shown = block.shown || rows;
      saved(`${name}.csv`, new Blob([csvOf(columns, shown)], {type: "text/csv;charset=utf-8"}));
      say(`${name}.csv: ${grouped(shown.length)} of ${grouped(rows.length)} rows, times in seconds`);
    });
  }
  // The queries behind a table or a figure, and the command that draws a figure.
  function wireSource(block) {
    const source = block.querySelector(".source"), opener = block.querySelector("button.sql");
    if (!opener) return;
    opener.addEventListener("click", () => {
      source.hidden = !source.hidden;
      opener.setAttribute("aria-expanded", String(!source.hidden));
    });
    for (const button of source.querySelectorAll("button.copy")) button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try { await navigator.clipboard.writeText(code.textContent); say("Copied"); } catch {
        getSelection().selectAllChildren(code);
        say("Selected: copy it with the keyboard");
      }
    });
  }

  // Matrices
  function headed(corner, names) {
    const head = element("thead"), row = element("tr");
    row.append(element("th", corner, {scope: "col"}), ...names.map(name => element("th", name, {scope: "col", title: name})));
    head.append(row);
    return head;
  }
  function buildMatrix(block) {
    const about = dataOf(block), scroll = block.querySelector(".scroll");
    const measureBox = block.querySelector("select"), stepsBox = block.querySelector(".steps");
    const order = about.order || about.columns;
    function show() {
      const place = Number(measureBox.value), measure = about.measures[place];
      const rows = about.rows.map((row, index) => [row, index]).filter(([row]) => !stepsBox || stepsBox.checked || !row.steps);
      const at = (row, column) => { const cell = about.cells[`${row},${column}`]; return cell ? cell[place] : null; };
      const columns = about.columns.map((name, index) => [name, index])
        .filter(([, index]) => rows.some(([, row]) => at(row, index)))
        .sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
      const table = element("table"), body = element("tbody");
      table.append(headed("workload", columns.map(([name]) => name)), body);
      for (const [row, index] of rows) {
        const line = element("tr");
        line.append(element("th", recipe(row.name, widest()), {scope: "row", title: row.name}));
        const values = columns.map(([, column]) => at(index, column));
        const known = values.filter(Boolean).map(([mean]) => mean);
        const best = known.length > 1 ? (measure.best === "low" ? Math.min : Math.max)(...known) : null;
        for (const value of values) {
          if (!value) { line.append(element("td", "–", {className: "none"})); continue; }
          const [mean, half, count] = value;
          const cell = element("td", written(measure.kind, mean), {title: [
            exact(measure.kind, mean), half === null ? "" : `± ${written(measure.kind, half)}`, count > 1 ? `${count} replicates` : "",
          ].filter(Boolean).join(", ")});
          if (mean === best) cell.className = "best";
          if (half !== null) cell.append(element("small", `± ${written(measure.kind, half)}`));
          line.append(cell);
        }
        body.append(line);
      }
      scroll.replaceChildren(table);
    }
    measureBox.addEventListener("change", show);
    if (stepsBox) stepsBox.addEventListener("change", show);
    show();
    faded(scroll);
  }
  function buildComparison(block) {
    const about = dataOf(block), scroll = block.querySelector(".scroll"), box = block.querySelector("select");
    function show() {
      const cells = about.measures[box.value], table = element("table"), body = element("tbody");
      table.append(headed("run", about.names), body);
      about.names.forEach((name, row) => {
        const line = element("tr");
        line.append(element("th", name, {scope: "row", title: name}));
        about.names.forEach((other, column) => {
          const value = cells[`${row},${column}`];
          if (!value || value[0] === null) { line.append(element("td", row === column ? "" : "–", {className: "none"})); return; }
          const [score, wins, losses, style = "", verdict = ""] = value;
          const text = (score > 0 ? "+" : score < 0 ? "−" : "") + Math.abs(score).toFixed(2);
          const shown = {chance: `(${text})`, untested: `${text} ?`}[style] || text;
          const cell = element("td", shown, {
            className: style,
            title: `${verdict ? verdict[0].toUpperCase() + verdict.slice(1) + ". " : ""}${name} wins ${Math.round(100 * wins)} % of the jobs, ${other} ${Math.round(100 * losses)} %`,
          });
          const strength = Math.round(Math.min(1, Math.abs(score) * 1.6) * 45);
          if (!style)
            cell.style.background = `color-mix(in srgb, var(${score > 0 ? "--c2" : "--c4"}) ${strength}%, transparent)`;
          line.append(cell);
        });
        body.append(line);
      });
      scroll.replaceChildren(table);
    }
    box.addEventListener("change", show);
    show();
  }

  // A box that scrolls sideways fades at its right edge until its end is reached.
  function faded(scroll) {
    const fade = () => scroll.classList.toggle("more", scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 2);
    scroll.addEventListener("scroll", fade);
    new ResizeObserver(fade).observe(scroll);
    new MutationObserver(fade).observe(scroll, {childList: true});
    fade();
  }

  // Figures: colors follow the scheme; fit.js fits them to the width of the page.
  const {fitted, FONT, LABEL, EDGE} = window.swflowFit;
  function recoloured(value) {
    if (typeof value === "string") return DARK[value] || value;
    if (Array.isArray(value)) return value.map(recoloured);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, recoloured(part)]));
    return value;
  }
  function themed(spec) {
    const style = getComputedStyle(document.documentElement), at = name => style.getPropertyValue(name).trim();
    const {datasets, ...rest} = spec;
    const shown = dark.matches ? recoloured(rest) : rest, font = FONT;
    const label = {labelColor: at("--soft"), titleColor: at("--soft"), labelFont: font, titleFont: font};
    const config = shown.config || {};
    return {...shown, datasets, background: "transparent", config: {
      ...config, font,
      axis: {...config.axis, ...label, domainColor: at("--line-strong"), tickColor: at("--line-strong"), gridColor: at("--line"), labelFontSize: LABEL},
      legend: {...config.legend, ...label, labelFontSize: LABEL, titleFontSize: LABEL},
      title: {...config.title, color: at("--ink"), subtitleColor: at("--soft"), font, subtitleFont: font, fontWeight: 600},
      view: {...config.view, stroke: at("--line-strong")},
      text: {color: at("--ink")},
    }};
  }
  const drawn = item => (item.items || []).reduce((sum, part) => sum + drawn(part), item.marktype && item.role === "mark" ? item.items.length : 0);
  // Layers without a mark: their data are gone. A brush has none until it is drawn.
  const hollow = item => (item.items || []).reduce((sum, part) => sum + hollow(part), Number(
    Boolean(item.marktype) && !item.items.length && ["mark", "scope"].includes(item.role) && !/brush/.test(item.name)));
  async function embed(figure, place, room) {
    const spec = themed(fitted(dataOf(figure), room));
    // The inner element: Vega says of its container what it is, and would take the words for those who cannot see.
    const result = await vegaEmbed(place.querySelector(".inner"), spec, {mode: "vega-lite", ast: true, actions: false, renderer: "canvas", tooltip: {theme: "custom"}});
    if (figure.view) figure.view.finalize();
    figure.view = result.view;
    place.classList.toggle("dark", dark.matches);
  }
  async function draw(figure) {
    const place = figure.querySelector(".drawing"), room = place.clientWidth;
    if (!room) { figure.begun = false; near.observe(figure); return; }
    figure.drawnFor = [room, dark.matches];
    try {
      // How wide labels are is known only when they are drawn: what is too wide is drawn again, narrower.
      for (let less = 0, tries = 0; tries < 3; tries++) {
        await embed(figure, place, room - less);
        const over = Math.ceil(place.querySelector("canvas").getBoundingClientRect().width) - room;
        if (over <= 0) break;
        less += over + EDGE * tries;
      }
      figure.dataset.marks = drawn(figure.view.scenegraph().root);
      figure.dataset.hollow = hollow(figure.view.scenegraph().root);
      if (figure.dataset.marks === "0") console.warn(`${figure.id}: nothing is drawn`);
      place.classList.add("done");
    } catch (error) {
      place.textContent = `This figure cannot be drawn: ${error.message}`;
      console.error(error);
    }
  }

  // A saved figure is the whole drawing in light colors, as the command draws it, whatever the width of the page.
  async function picture(block, format) {
    const spec = dataOf(block), place = document.createElement("div");
    const result = await vegaEmbed(place, {...spec, background: "white"}, {mode: "vega-lite", ast: true, actions: false, renderer: "none"});
    const name = `${block.dataset.name}.${format}`;
    if (format === "svg") saved(name, new Blob([await result.view.toSVG()], {type: "image/svg+xml"}));
    else saved(name, await new Promise(async done => (await result.view.toCanvas(2)).toBlob(done, "image/png")));
    result.view.finalize();
    say(name);
  }
  function wireFigure(block) {
    for (const format of ["svg", "png"]) block.querySelector(`button.${format}`).addEventListener("click", () => picture(block, format));
  }

  // What is near is built first, and the rest when the browser is idle, so that everything is there to be printed.
  let queue = Promise.resolve();
  const visible = block => block.checkVisibility();
  function build(block) {
    if (block.begun || !visible(block)) return;
    block.begun = true;
    if (block.matches("figure")) queue = queue.then(() => draw(block));
    else buildTable(block);
  }
  const near = new IntersectionObserver(entries => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); build(entry.target); }
  }, {rootMargin: "600px 0px"});
  const blocks = [...document.querySelectorAll("figure.block, .block.table")];
  for (const block of blocks) { near.observe(block); wireSource(block); }
  document.querySelectorAll(".block.table, .block.paper, .block.claims").forEach(wireTable);
  document.querySelectorAll(".block.paper, .block.claims").forEach(wireSource);
  document.querySelectorAll(".paper .scroll").forEach(faded);
  document.querySelectorAll("figure.block").forEach(wireFigure);
  document.querySelectorAll(".block.matrix").forEach(buildMatrix);
  document.querySelectorAll(".block.compare").forEach(buildComparison);
  const MOST_WAITED = 200; // ms: a busy browser is never idle
  const idle = task => window.requestIdleCallback ? requestIdleCallback(task, {timeout: MOST_WAITED}) : setTimeout(task, MOST_WAITED);
  function buildNext() {
    const block = blocks.find(block => !block.begun && visible(block));
    if (!block) return;
    build(block);
    queue.then(() => idle(buildNext));
  }
  if (document.querySelectorAll("article").length === 1) addEventListener("load", () => idle(buildNext));
  for (const fold of document.querySelectorAll("details.fold")) fold.addEventListener("toggle", () => {
    if (fold.open) blocks.filter(block => fold.contains(block)).forEach(build);
  });
  window.swflowReport = {
    recipe,
    async buildAll() {
      document.querySelectorAll("article:not([hidden]) details.fold").forEach(fold => { fold.open = true; });
      blocks.forEach(build);
      await queue;
    },
    get figures() { return document.querySelectorAll("figure.block"); },
  };
  addEventListener("beforeprint", () => {
    window.swflowReport.buildAll();
    for (const block of blocks) if (block.buildMore && visible(block)) block.buildMore(MOST_PRINTED);
  });
  let waiting;
  function redraw() {
    if (matchMedia("print").matches) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      for (const figure of document.querySelectorAll("figure.block")) {
        const room = figure.querySelector(".drawing").clientWidth;
        if (figure.drawnFor && room && (figure.drawnFor[0] !== room || figure.drawnFor[1] !== dark.matches)) queue = queue.then(() => draw(figure));
      }
    }, 150);
  }
  addEventListener("resize", redraw);
  dark.addEventListener("change", redraw);

  // Navigation: a drawer on a narrow page; in a single file, pages are articles that the address chooses.
  const menu = document.getElementById("menu"), nav = document.getElementById("navigation"), shade = document.getElementById("shade");
  function drawer(open) {
    nav.classList.toggle("open", open);
    shade.hidden = !open;
    menu.setAttribute("aria-expanded", String(open));
    if (open) nav.querySelector("a").focus(); else if (nav.contains(document.activeElement)) menu.focus();
  }
  menu.addEventListener("click", () => drawer(!nav.classList.contains("open")));
  shade.addEventListener("click", () => drawer(false));
  nav.addEventListener("click", event => { if (event.target.closest("a")) drawer(false); });
  addEventListener("keydown", event => { if (event.key === "Escape" && nav.classList.contains("open")) drawer(false); });
  const articles = [...document.querySelectorAll("article")];
  function route() {
    if (articles.length < 2) return;
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const article = (target && target.closest("article")) || articles[0];
    for (const other of articles) other.hidden = other !== article;
    for (const link of nav.querySelectorAll("[data-page]")) {
      if (link.dataset.page === article.id) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
    document.title = `${article.dataset.title} · swflow report`;
    if (!target || target === article) scrollTo(0, 0); else target.scrollIntoView();
  }
  addEventListener("hashchange", route);
  route();
})();
