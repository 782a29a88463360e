/** Requests to the server: one answer or a stream of lines, both abortable. */

/**
 * A failed request. `kind` is "network" if the answer is missing or broken, "server" if the server is busy or has failed, and
 * "refused" if the request itself is wrong. Only a refused request would fail again.
 */
class ApiError extends Error {
  constructor(kind) {
    super(kind);
    this.kind = kind;
  }
}

export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Send a request and return what `read` makes of the response. */
async function ask(path, options, read = (response) => response.json()) {
  try {
    const response = await fetch(`api/${path}`, options);
    if (!response.ok) throw new ApiError(response.status < 500 ? "refused" : "server");
    return await read(response);
  } catch (error) {
    if (isAbort(error) || error instanceof ApiError) throw error;
    throw new ApiError("network");
  }
}

function post(path, body, signal, read) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body), signal }, read);
}

/** Return a function that calls `onLine` with each JSON line of a response as it arrives. */
function linesTo(onLine) {
  return async (response) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines.map((text) => JSON.parse(text))) {
        if (line.error) throw new ApiError("server");
        onLine(line);
      }
    }
  };
}

export const api = {
  info: () => ask("info"),
  warm: (engine, signal) => post("warm", engine, signal),
  move: (game, options, signal) => post("move", { ...game, ...options }, signal),
  problem: (wanted, signal) => post("problem", wanted, signal),
  analyse: (game, options, onLine, signal) => post("analyse", { ...game, ...options }, signal, linesTo(onLine)),
  review: (game, options, onLine, signal) => post("review", { ...game, ...options }, signal, linesTo(onLine)),
  read: (text) => post("read", { text }),
  write: (game, format) => post("write", { ...game, format }),
};
