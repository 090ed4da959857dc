// Bundles src/ and the style sheet into static/build/, each file named by its content, and writes manifest.json last:
// the pages follow the manifest, so a half-finished build is never served.
import { build } from "esbuild";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { readFileSync } from "node:fs";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "static", "build");
const entries = { boot: "src/boot.ts", main: "src/main.ts", site: "static/styles/site.css" };

const result = await build({
  absWorkingDir: here,
  entryPoints: entries,
  outdir: out,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["es2022"],
  minify: true,
  metafile: true,
  legalComments: "none",
  logLevel: "warning",
});

const manifest = {};
for (const [path, output] of Object.entries(result.metafile.outputs)) {
  if (!output.entryPoint) continue;
  const entry = Object.entries(entries).find(([, source]) => source === output.entryPoint);
  if (entry) manifest[entry[0] + path.slice(path.lastIndexOf("."))] = basename(path);
}

await mkdir(out, { recursive: true });
const kept = new Set([...Object.keys(result.metafile.outputs).map((path) => basename(path)), "manifest.json"]);
for (const name of await readdir(out)) {
  if (!kept.has(name)) await rm(join(out, name), { recursive: true });
}
const written = join(out, "manifest.json");
await writeFile(`${written}.new`, `${JSON.stringify(manifest, null, 2)}\n`);
await rename(`${written}.new`, written);

for (const path of Object.keys(result.metafile.outputs)) {
  const body = readFileSync(join(here, path));
  const sizes = [gzipSync(body).length, brotliCompressSync(body).length].map((size) => (size / 1024).toFixed(1));
  console.log(`${basename(path).padEnd(28)} ${sizes[0].padStart(7)} kB gzip ${sizes[1].padStart(7)} kB brotli`);
}
