// Asks this server and no other. A token comes by the address's fragment (#token=...) or by the
// form, stays in this tab, and goes out in a header: no cookie that other sites could ride on.

const KEY = 'kernelmill-token';

// A page that `kernelmill page export` wrote has its documents beside it, and asks no server.
const stored = window.kernelmillStored;
export const isStored = stored !== undefined;

export function takeToken() {
  const found = /^#token=([^&]+)$/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(KEY, decodeURIComponent(found[1]));
  history.replaceState(null, '', '#/runs');
}

export function setToken(text) {
  sessionStorage.setItem(KEY, text);
}

function headers(more = {}) {
  const token = sessionStorage.getItem(KEY);
  return token ? {...more, Authorization: `Bearer ${token}`} : more;
}

export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `the server answered ${status}`);
    this.status = status;
    this.hint = error?.hint ?? '';
    this.category = error?.category ?? '';
  }
}

async function read(answer) {
  const text = await answer.text();
  let document = null;
  try {
    document = JSON.parse(text);
  } catch {
    throw new Refused(answer.status, {message: 'the answer is no JSON'});
  }
  if (!answer.ok) throw new Refused(answer.status, document.error);
  return document;
}

/** Path parts and queries are encoded here, and only here. */
export function path(...parts) {
  return '/api/v1/' + parts.map(encodeURIComponent).join('/');
}

export async function get(where, query = {}, signal = undefined) {
  if (isStored) return fromStore(where, query);
  const wanted = Object.entries(query).filter(([, v]) => v !== '' && v !== undefined && v !== null);
  const tail = wanted.length ? '?' + new URLSearchParams(wanted) : '';
  return read(await fetch(where + tail, {headers: headers(), signal}));
}

/** Loads what was written by a script element: a page from a disk may read files in no other way. */
function fromStore(where, query) {
  const file = stored.files[where];
  if (file === undefined)
    return Promise.reject(new Refused(404, {category: 'not_found', message: 'This is not part of the stored page.',
      hint: 'A server has it: kernelmill page runs'}));
  stored.waiting[file] ??= new Promise((done, failed) => {
    const script = document.createElement('script');
    stored.loaded[file] = done;
    script.src = file;
    script.onerror = () => failed(new Refused(404, {category: 'not_found', message: `failed to read ${file}`}));
    document.head.append(script);
  });
  return stored.waiting[file].then((all) => cut(structuredClone(all), query));
}

const PAGED = ['runs', 'episodes', 'groups', 'tasks', 'findings', 'evaluations', 'kernels'];

/** The order and the page that the query asks for; conditions are a server's work. */
function cut(all, query) {
  const name = PAGED.find((x) => Array.isArray(all[x]));
  if (!name) return all;
  const key = String(query.sort ?? '').replace(/^-/, ''), sign = String(query.sort ?? '').startsWith('-') ? -1 : 1;
  const order = (a, b) => (a === null || a === undefined) - (b === null || b === undefined)
    || sign * (typeof a === 'string' ? a.localeCompare(b, 'en', {numeric: true}) : a - b);
  if (key) all[name].sort((a, b) => order(a[key], b[key]));
  const offset = Number(query.offset || 0);
  all.matching = all[name].length;
  all.offset = offset;
  all[name] = all[name].slice(offset, offset + Number(query.limit || 100));
  return all;
}

export async function send(method, where, body) {
  const options = {method, headers: headers(body ? {'Content-Type': 'application/json'} : {})};
  if (body) options.body = JSON.stringify(body);
  return read(await fetch(where, options));
}

async function whole(where, signal = undefined) {
  if (isStored) throw new Refused(404, {message: 'Whole texts are on a server.', hint: 'kernelmill page runs'});
  const answer = await fetch(where, {headers: headers(), signal});
  if (!answer.ok) throw new Refused(answer.status, null);
  return answer;
}

/** A whole text of a turn. */
export async function wholeText(where, signal = undefined) {
  return (await whole(where, signal)).text();
}

/** A whole text, saved as a file. */
export async function save(where, name) {
  const url = URL.createObjectURL(await (await whole(where)).blob());
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// Of turns a second a page wants the newest: a reader can follow no more, and a busy run is not slowed down.
const MOST_TURNS = '100';

/**
 * Reads server-sent events until `signal` ends it; goes on where it left when the connection or the
 * process is lost. EventSource cannot send a token, so this reads the stream itself.
 */
export async function follow(query, onEvent, onState, signal) {
  let last = '';
  let wait = 250;
  while (!signal.aborted) {
    try {
      const more = last ? {'Last-Event-ID': last} : {};
      const answer = await fetch('/api/v1/events?' + new URLSearchParams({...query, most: MOST_TURNS}),
                                 {headers: headers(more), signal, cache: 'no-store'});
      if (!answer.ok) throw new Refused(answer.status, null);
      onState('live');
      wait = 250;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = '';
      for (;;) {
        const {value, done} = await reader.read();
        if (done) break;
        rest += value;
        const blocks = rest.split('\n\n');
        rest = blocks.pop();
        for (const block of blocks) {
          const event = {event: '', data: ''};
          for (const line of block.split('\n')) {
            const at = line.indexOf(': ');
            const field = line.slice(0, at);
            if (field === 'id') last = line.slice(at + 2);
            else if (field in event) event[field] = line.slice(at + 2);
          }
          if (event.event) onEvent(event.event, JSON.parse(event.data));
        }
      }
    } catch (why) {
      if (signal.aborted) return;
      if (why.status === 401) {
        onState('needs a token');
        return;
      }
    }
    if (signal.aborted) return;
    onState('lost; connecting again');
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(wait * 2, 4000);
  }
}
