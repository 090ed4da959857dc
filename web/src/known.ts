/** Names that one would else look up. */
export interface Known {
  name: string;
  signature: string;
  about: string;
}

/** Of lines like `name(arguments): what it does`. */
export function known(text: string): Known[] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [signature = "", about = ""] = line.split(/: (.*)/s);
      return { name: signature.replace(/\(.*$/s, ""), signature, about };
    });
}
