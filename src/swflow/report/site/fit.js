// How a figure (a Vega-Lite specification) fits the width of a page: panels side by side wrap, and so do titles, legends
// and names. `fitted(spec, room)` returns the specification for a width in pixels.
window.swflowFit = (() => {
  "use strict";
  const FONT = "system-ui, Segoe UI, Roboto, Helvetica Neue, DejaVu Sans, sans-serif";
  // Pixels: an axis of values, the margins of a figure, a color bar, what an entry of a legend has besides its text, a
  // line of names, and the least width of a legend above a panel that stands beside others.
  const AXES = 56, EDGE = 16, BAR = 50, ENTRY = 32, LINE = 13, KEY = 280;
  // Sizes of fonts, pixels.
  const LABEL = 11, TITLE = 12, SUBTITLE = 10;
  const pen = document.createElement("canvas").getContext("2d");
  function wide(text, size, weight = "normal") {
    pen.font = `${weight} ${size}px ${FONT}`;
    return pen.measureText(text.trim()).width;
  }
  // Lines end at blanks and before steps of workloads, else after signs, else anywhere.
  const PARTS = [/[+]?[^+\s]*\s*/g, /[^-/_,:]*[-/_,:]?\s*/g, /./gu];
  function broken(text, most, size, weight) {
    const fits = line => wide(line, size, weight) <= most;
    const within = (text, level) => {
      if (fits(text) || level === PARTS.length) return [text];
      const lines = [];
      for (const part of text.match(PARTS[level]).filter(Boolean)) {
        if (lines.length && fits(lines.at(-1) + part)) lines.push(lines.pop() + part);
        else lines.push(...within(part, level + 1));
      }
      return lines;
    };
    return within(text, 0).map(line => line.trim());
  }
  const brokenAll = (texts, ...how) => [texts].flat().flatMap(text => broken(text, ...how));
  // An expression for the lines of names.
  const lookup = (names, lines) => `${JSON.stringify(lines)}[indexof(${JSON.stringify(names)}, datum.label)] || datum.label`;
  const widestOf = texts => Math.max(0, ...texts.map(text => wide(text, LABEL)));

  const panelWidth = node => node.width || Math.max(0, ...(node.layer || []).map(panelWidth));
  const changed = (panel, change) =>
    ({...change(panel), ...(panel.layer ? {layer: panel.layer.map(part => changed(part, change))} : {})});
  const everyLayer = panel => [panel, ...(panel.layer || []).flatMap(everyLayer)];
  // Legends of names, and color bars.
  const namesOf = channel => channel.scale && Array.isArray(channel.scale.domain) && channel.legend !== null &&
    channel.scale.domain.every(name => typeof name === "string") ? channel.scale.domain : null;
  const isBeside = ({legend}) => legend !== null && (!legend || !legend.orient || ["left", "right"].includes(legend.orient));
  const keyOf = panel => Math.max(0, ...everyLayer(panel).map(({encoding}) => encoding && encoding.color)
    .filter(color => color && color.field && isBeside(color))
    .map(color => namesOf(color) ? widestOf(namesOf(color)) + ENTRY : BAR));
  function keyed(panel, most, above) {
    const legend = channel => {
      const names = channel && channel.field && channel.legend ? namesOf(channel) : null;
      if (!names || (isBeside(channel) && !above) || (channel.legend.orient || "").includes("-")) return channel;
      const {legend} = channel, inRow = isBeside(channel) ? 2 : legend.columns || names.length;
      const columns = Math.max(1, Math.min(inRow, Math.floor(most / (widestOf(names) + ENTRY))));
      const lines = names.map(name => broken(name, most - ENTRY, LABEL));
      const split = lines.some(({length}) => length > 1) ? {labelExpr: lookup(names, lines)} : {};
      return {...channel, legend: {...legend, ...split, columns, labelLimit: most, orient: isBeside(channel) ? "top" : legend.orient}};
    };
    return changed(panel, node => node.encoding
      ? {...node, encoding: Object.fromEntries(Object.entries(node.encoding).map(([name, channel]) => [name, legend(channel)]))} : node);
  }
  // Names beside rows.
  function rowsOf({encoding}) {
    const y = encoding && encoding.y;
    if (!y || y.type !== "nominal" || !Array.isArray(y.sort) || !y.axis || y.axis.labelExpr) return [];
    return y.sort;
  }
  const namesRoom = room => Math.min(260, Math.max(120, Math.round(0.36 * room)));
  function named(panel, room) {
    const all = everyLayer(panel).flatMap(rowsOf), most = namesRoom(room);
    if (!all.length) return panel;
    const linesOf = name => broken(name, most, LABEL), highest = Math.max(...all.map(name => linesOf(name).length));
    // Lines go downwards from the place of the first, so that names of fewer lines begin with empty ones.
    const missing = name => highest - linesOf(name).length;
    const centered = name => [...Array(Math.floor(missing(name) / 2)).fill(""), ...linesOf(name)];
    const between = names => `indexof(${JSON.stringify(names.filter(name => missing(name) % 2))}, datum.value) >= 0`;
    const changedAxis = (axis, names) => highest === 1 ? {...axis, labelLimit: most + 4} : {
      ...axis, labelLimit: most + 4, labelExpr: lookup(names, names.map(centered)), labelOffset: -LINE * (highest - 1) / 2,
      labelBaseline: {value: "middle", condition: {test: between(names), value: "line-top"}},
    };
    const {height} = panel, step = LINE * highest + 4;
    const higher = typeof height === "number" ? Math.max(height, step * new Set(all).size) : {step: Math.max(height ? height.step : 0, step)};
    return {...changed(panel, node => {
      const names = rowsOf(node);
      if (!names.length) return node;
      const {y} = node.encoding;
      return {...node, encoding: {...node.encoding, y: {...y, axis: changedAxis(y.axis, names)}}};
    }), height: higher};
  }
  const leftOf = (node, room) => Math.max(AXES, ...[node, ...(node.vconcat || [])].flatMap(everyLayer)
    .map(part => 12 + Math.min(namesRoom(room), widestOf(rowsOf(part)))));
  // Titles of panels and of axes.
  function titledWithin(panel, most) {
    // The title of an axis is centered below its panel.
    const below = Math.min(most, panelWidth(panel) + 2 * EDGE);
    const split = part => part && part.title ? {...part, title: brokenAll(part.title, below, LABEL)} : part;
    const axes = changed(panel, node => {
      const x = node.encoding && node.encoding.x;
      return x ? {...node, encoding: {...node.encoding, x: {...split(x), ...(x.axis ? {axis: split(x.axis)} : {})}}} : node;
    });
    if (!panel.title) return axes;
    const {text, subtitle, ...rest} = panel.title.text ? panel.title : {text: panel.title};
    return {...axes, title: {...rest, text: brokenAll(text, most, TITLE, 600), subtitle: brokenAll(subtitle || [], most, SUBTITLE)}};
  }
  function fitted(node, room, left = leftOf(node, room)) {
    if (node.vconcat) {
      // Rows of one panel each are one row of panels.
      const single = node.vconcat.filter(part => part.hconcat && part.hconcat.length === 1);
      if (single.length > 1 && single.length === node.vconcat.filter(part => part.hconcat).length) {
        const {data, ...first} = single[0];
        const panels = single.map(part => part.data ? {data: part.data, ...part.hconcat[0]} : part.hconcat[0]);
        const rest = node.vconcat.filter(part => !part.hconcat);
        return fitted({...node, vconcat: [{...first, hconcat: panels}, ...rest, {}].filter(part => Object.keys(part).length)}, room);
      }
      return {...node, vconcat: node.vconcat.map(part => fitted(part, room, left)).filter(Boolean)};
    }
    if (node.hconcat) {
      const {hconcat, ...rest} = node, gap = node.spacing ?? 14;
      const total = (panels, key) => panels.reduce((sum, panel) => sum + panelWidth(panel) + AXES + key(panel) + gap, -gap);
      const above = total(hconcat, keyOf) > room && hconcat.some(panel => keyOf(panel) > BAR);
      const key = above ? panel => keyOf(panel) && keyOf(panel) <= BAR ? BAR : 0 : keyOf;
      // Heatmaps have cells of whole pixels: three wide, or two.
      let panels = hconcat;
      if (total(panels, key) > room) panels = panels.map(panel => panelWidth(panel) === 300 ? {...panel, width: 200} : panel);
      panels = panels.map(panel => narrowed(panel, room, AXES, key(panel)));
      const need = Math.max(...panels.map(panelWidth)) + AXES + gap;
      const columns = total(panels, key) <= room ? panels.length
        : Math.max(1, Math.floor((room + gap - Math.max(...panels.map(key))) / need));
      // Titles may fill what a row leaves over.
      const spare = (room - columns * need + gap - Math.max(...panels.map(key))) / columns;
      const most = panel => columns === 1 ? room - AXES - EDGE : panelWidth(panel) + Math.max(spare, 8);
      // A legend of all panels must be the same in each.
      const separate = node.resolve && node.resolve.scale && node.resolve.scale.color === "independent";
      const least = columns === 1 ? 0 : KEY, ofAll = Math.min(...panels.map(most));
      panels = panels.map(panel => titledWithin(keyed(panel, Math.max(separate ? most(panel) : ofAll, least), above), most(panel)));
      return {...rest, concat: panels, columns, align: "each"};
    }
    if (node.name === "key") return panelWidth(node) > room ? null : node;
    const above = panelWidth(node) + left + keyOf(node) > room && keyOf(node) > BAR;
    const panel = narrowed(node, room, left, above ? 0 : keyOf(node));
    return titledWithin(keyed(named(panel, room), room - left - EDGE, above), room - left - EDGE);
  }
  function narrowed(panel, room, left, key) {
    const width = panelWidth(panel), inside = Math.floor(room - left - (key || 8));
    const wanted = width >= 600 ? Math.min(Math.max(inside, 160), 1040)
      : width <= inside ? width : width === 300 && inside >= 200 ? 200 : Math.max(120, inside);
    return !width || wanted === width ? panel : {...panel, width: wanted};
  }
  return {fitted, FONT, LABEL, EDGE};
})();
