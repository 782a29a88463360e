/** Let the browser keep the page, see sw.js. Browsers refuse it for HTTP from another computer. */

navigator.serviceWorker?.register("sw.js").catch(() => {}); // the page works without it
