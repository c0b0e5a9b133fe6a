// Elements of the page. Text only ever becomes text nodes and attribute values, so that nothing a device sends is interpreted as HTML.

// Creates an element. Members of `attributes`: `on…` a listener, `class`, boolean attributes, any other attribute. Children: nodes,
// strings, nested arrays; null and false are omitted.
export function element(name, attributes = {}, ...children) {
  return fill(name === "svg" || SVG.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name),
    attributes, children);
}

const SVG = new Set(["svg", "path", "circle", "text", "g", "line"]);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...shown(children));
  return node;
}

// Replaces the children of a node; nested arrays, null and false as in `element`.
export function replace(node, ...children) {
  node.replaceChildren(...shown(children));
}

const shown = (children) => children.flat(Infinity).filter((child) => child != null && child !== false);

// Sets the text of a node, unless it has this text already: an assignment, even of the same text, makes the browser lay out the page.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Sets or, if `value` is null, removes an attribute.
export function setAttribute(node, name, value) {
  if (value == null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// Has the browser save a file.
export function save(name, data, type) {
  const address = URL.createObjectURL(data instanceof Blob ? data : new Blob([data], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
