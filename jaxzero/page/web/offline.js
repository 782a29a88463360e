/** Lets the browser keep the page, see sw.js. A page from another computer may not be kept. */

navigator.serviceWorker?.register("sw.js").catch(() => {}); // the page works without it
