/** Sends a form's file to be judged or run, each press once: a key tells the server which presses are the same. */
export interface Try {
  run?: string;
  inputs?: string | undefined;
}

type Made = { id: string } | { problem: string; signedOut: boolean };

interface Problem {
  title?: string;
  detail?: string;
  errors?: { accepted?: string | null }[];
}

export class Sending {
  #key = "";
  #content = "";
  busy = false;
  /** Whether anything was sent from this page. */
  sent = false;

  readonly #buttons: HTMLButtonElement[];

  constructor(private readonly form: HTMLFormElement) {
    this.#buttons = [...form.querySelectorAll<HTMLButtonElement>("button[type=submit]")].filter((button) => !button.disabled);
  }

  async send(what: Try): Promise<Made> {
    this.busy = true;
    this.enable(false);
    try {
      return await this.post(what);
    } finally {
      this.busy = false;
      this.enable(true);
    }
  }

  private async post(what: Try): Promise<Made> {
    const body = new FormData(this.form);
    for (const [name, value] of Object.entries(what)) if (value) body.set(name, value as string);
    const headers = { accept: "application/json", "idempotency-key": this.keyOf(body) };
    const response = await fetch(this.form.action, { method: "POST", body, headers }).catch(() => null);
    if (!response) return { problem: "The service could not be reached. Try again: it is not sent twice.", signedOut: false };
    this.#key = "";
    const said = (await response.json().catch(() => ({}))) as Problem & { id?: string };
    if (response.ok && said.id) {
      this.sent = true;
      return { id: said.id };
    }
    if (response.status === 401) return { problem: "You are signed out by now.", signedOut: true };
    const accepted = said.errors?.map((each) => each.accepted).find(Boolean);
    const after = response.headers.get("retry-after");
    const parts = [said.title ? `${said.title}.` : `The service answered ${response.status}.`, said.detail];
    if (accepted) parts.push(`Accepted: ${accepted}.`);
    if (after) parts.push(`You can try again in ${after} s.`);
    return { problem: parts.filter(Boolean).join(" "), signedOut: false };
  }

  /** The key of a try that got no answer stays the same until what is sent is another. */
  private keyOf(body: FormData): string {
    const content = JSON.stringify([...body].map(([name, value]) => [name, typeof value === "string" ? value : value.name + value.size]));
    if (!this.#key || content !== this.#content) {
      this.#key = [...crypto.getRandomValues(new Uint8Array(16))].map((each) => each.toString(16).padStart(2, "0")).join("");
      this.#content = content;
    }
    return this.#key;
  }

  private enable(on: boolean): void {
    for (const button of this.#buttons) button.disabled = !on;
  }
}
