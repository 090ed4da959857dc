/**
 * What somebody writes for a stage, kept in this browser until it is the starter again.
 *
 * Every tab keeps its own as well, so that of two tabs neither loses what was typed in it; a new tab begins with the newest.
 */
export interface Draft {
  text: string;
  at: number;
  /** The submission whose source it began with, where it did. */
  from?: string;
}

export class Drafts {
  readonly #key: string;

  constructor(
    owner: string,
    private readonly stage: string,
  ) {
    this.#key = `draft:${owner}:${stage}`;
    if (owner) this.adopt();
  }

  /** What was written before signing in is the account's from then on, unless its own draft is newer. */
  private adopt(): void {
    const visitors = `draft::${this.stage}`;
    const theirs = read(localStorage, visitors);
    if (theirs && theirs.at > (read(localStorage, this.#key)?.at ?? 0) && write(localStorage, this.#key, theirs))
      sessionStorage.removeItem(this.#key);
    if (theirs) localStorage.removeItem(visitors);
    sessionStorage.removeItem(visitors);
  }

  newest(): Draft | null {
    return read(sessionStorage, this.#key) ?? read(localStorage, this.#key);
  }

  /** Whether there was room for it. */
  keep(draft: Draft): boolean {
    const here = write(sessionStorage, this.#key, draft);
    return write(localStorage, this.#key, draft) || here;
  }

  drop(): void {
    localStorage.removeItem(this.#key);
    sessionStorage.removeItem(this.#key);
  }
}

function read(store: Storage, key: string): Draft | null {
  try {
    const value = JSON.parse(store.getItem(key) ?? "null") as Partial<Draft> | null;
    if (typeof value?.text !== "string" || typeof value.at !== "number") return null;
    return { text: value.text, at: value.at, ...(typeof value.from === "string" ? { from: value.from } : {}) };
  } catch {
    return null;
  }
}

function write(store: Storage, key: string, draft: Draft): boolean {
  try {
    store.setItem(key, JSON.stringify(draft));
    return true;
  } catch {
    return false;
  }
}
