// Browsers start no workers from file: URLs. This replacement runs the search worker in a hidden frame, so that the
// search works when the site is opened from disk, without a network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inner = frame.contentWindow
      inner.document.open()
      inner.document.write("<!doctype html><title>search</title>")
      inner.document.close()
      inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      inner.importScripts = () => Promise.resolve() // only search languages other than English need it
      const loaded = new Promise(resolve => {
        const script = inner.document.createElement("script")
        script.src = url
        script.onload = resolve
        inner.document.head.append(script)
      })
      this.postMessage = data => loaded.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })))
      this.terminate = () => frame.remove()
    }
  }
}
