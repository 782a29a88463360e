/** Requests to the server: one answer or a stream of lines, both abortable. */

const ready = new Set(); // boards whose engine is compiled
const warming = new Map(); // running requests to compile a board; callers share them

/**
 * A failed request. `kind` is "network" if the answer is missing or broken, else "server". `passes`
 * is true if the same request may succeed later, because the request itself is not wrong.
 */
class ApiError extends Error {
  constructor(kind, message, status = 0) {
    super(message);
    this.kind = kind;
    this.passes = status < 400 || status >= 500;
  }
}

export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(`api/${path}`, options);
  } catch (error) {
    if (isAbort(error)) throw error;
    ready.clear(); // a new server may have replaced the old one
    throw new ApiError("network", String(error.message));
  }
  if (!response.ok) throw await readError(response);
  return response;
}

async function readError(response) {
  let message = response.statusText;
  try {
    message = (await response.json()).error ?? message;
  } catch {
    // The body is not JSON: keep the status text.
  }
  return new ApiError("server", message, response.status);
}

function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return send(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

async function json(response) {
  try {
    return await response.json();
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError("network", String(error.message));
  }
}

/** Call `onLine` with each JSON line of a response as it arrives. */
async function readLines(response, onLine) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      lines.filter((line) => line.trim()).forEach((line) => onLine(parseLine(line)));
    }
    if (rest.trim()) onLine(parseLine(rest));
  } catch (error) {
    if (isAbort(error) || error instanceof ApiError) throw error;
    throw new ApiError("network", String(error.message));
  }
}

function parseLine(text) {
  const line = JSON.parse(text);
  if (line.error) throw new ApiError("server", line.error);
  return line;
}

export const api = {
  info: async (signal) => json(await send("info", { signal })),
  warm: async (engine, signal) => json(await post("warm", engine, signal)),
  move: async (game, options, signal) => json(await post("move", { ...game, ...options }, signal)),
  problem: async (wanted, signal) => json(await post("problem", wanted, signal)),
  analyse: async (game, options, onLine, signal) =>
    readLines(await post("analyse", { ...game, ...options }, signal), onLine),
  review: async (game, options, onLine, signal) =>
    readLines(await post("review", { ...game, ...options }, signal), onLine),
  read: async (text) => json(await post("read", { text })),
  write: async (game, format, names) => json(await post("write", { ...game, format, names })),
};

/** Compile an engine for a board once. If all callers give up, the request ends. */
export async function warm({ rows, cols, level }, signal) {
  const name = `${rows}x${cols} ${level}`;
  if (ready.has(name)) return;
  if (!warming.has(name)) {
    const controller = new AbortController();
    const answer = api.warm({ rows, cols, level }, controller.signal).then(() => ready.add(name));
    warming.set(name, { answer, controller, waiting: 0 });
  }
  const request = warming.get(name);
  request.waiting++;
  try {
    await Promise.race([request.answer, aborted(signal)]);
  } finally {
    request.waiting--;
    // End it later: a caller that gives up and asks again at once keeps the same request.
    setTimeout(() => request.waiting || end(name, request));
  }
}

function end(name, request) {
  request.controller.abort();
  if (warming.get(name) === request) warming.delete(name);
}

/** Return a promise that rejects when a signal is aborted. */
function aborted(signal) {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
