/**
 * The service worker: keeps the page in the browser, so that two people can play without the server.
 *
 * The server writes two constants above this text: VERSION, the version of all files, and FILES,
 * their paths. Both change if any file changes, and then the browser installs this worker again.
 */

const CACHE = `jaxzero ${VERSION}`;
const kept = new Set(FILES.map((path) => new URL(path, self.location).href));

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(["./", ...FILES])));
});

self.addEventListener("activate", (event) => event.waitUntil(dropOldVersions()));

/** Take the page itself from the server if the server answers, so that the page is the newest. */
self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.mode === "navigate") event.respondWith(fetch(request).catch(() => caches.match("./")));
  else if (kept.has(request.url)) event.respondWith(fromCache(request));
});

async function fromCache(request) {
  return (await caches.match(request)) ?? fetch(request);
}

async function dropOldVersions() {
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith("jaxzero ") && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
}
