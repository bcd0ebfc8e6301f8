// The stream of events. `fetch` reads the stream, because an EventSource reports neither why the service refuses it nor
// that the service sends nothing any more.

import { pathOf } from "./api.js";

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30_000;
// The service sends something every 15 seconds.
const SILENT_MS = 40_000;
const UNAUTHORIZED = 401;

export class Stream {
  /** `onEvent` gets each event; `onChange` is called when the stream opens and when it ends. */
  constructor(onEvent, onChange) {
    this.onEvent = onEvent;
    this.onChange = onChange;
    this.isOpen = false;
    this.position = null;
    this.stopping = null;
  }

  get isStarted() {
    return this.stopping !== null;
  }

  /** Opens the stream at its last position. After an interruption, the stream is opened again, until `close` is called
   * or the session has ended. */
  open() {
    if (this.stopping) return;
    this.stopping = new AbortController();
    this.#run(this.stopping.signal);
  }

  close() {
    this.stopping?.abort();
    this.stopping = null;
    this.#setOpen(false);
  }

  async #run(stopped) {
    let wait = FIRST_WAIT_MS;
    while (!stopped.aborted) {
      const status = await this.#listen(stopped);
      if (stopped.aborted) return;
      if (this.isOpen) wait = FIRST_WAIT_MS;
      this.#setOpen(false);
      if (status === UNAUTHORIZED) {
        this.stopping = null;
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(LONGEST_WAIT_MS, wait * 2);
    }
  }

  /** Returns the status when the stream has ended; null if there was no answer. */
  async #listen(stopped) {
    const silent = new AbortController();
    let timer = setTimeout(() => silent.abort(), SILENT_MS);
    let status = null;
    try {
      const headers = { Accept: "text/event-stream", ...(this.position && { "Last-Event-ID": this.position }) };
      const answer = await fetch(pathOf("v1/events"), { headers, cache: "no-store", signal: AbortSignal.any([stopped, silent.signal]) });
      status = answer.status;
      if (!answer.ok) return status;
      let text = "";
      for await (const part of parts(answer.body.pipeThrough(new TextDecoderStream()))) {
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), SILENT_MS);
        const blocks = (text + part).split("\n\n");
        text = blocks.pop();
        for (const block of blocks) this.#take(block);
        if (!stopped.aborted) this.#setOpen(true);
      }
    } catch {
      // The connection was interrupted. The caller opens it again.
    } finally {
      clearTimeout(timer);
    }
    return status;
  }

  #take(block) {
    let data = null;
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) this.position = line.slice(4);
      if (line.startsWith("data: ")) data = line.slice(6);
    }
    if (data) this.onEvent(JSON.parse(data));
  }

  #setOpen(isOpen) {
    if (this.isOpen === isOpen) return;
    this.isOpen = isOpen;
    this.onChange();
  }
}

// The stream is read by hand, because not every browser can iterate over a stream.
async function* parts(stream) {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
