// Bundles src/ and the style sheet into static/build/, each file named by its content and packed beside it, and writes
// manifest.json last: the pages follow the manifest, so a half-finished build is never served.
import { build } from "esbuild";
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";

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
const built = Object.keys(result.metafile.outputs);
const packings = { ".gz": (body) => gzipSync(body, { level: 9 }), ".br": (body) => brotliCompressSync(body) };
for (const path of built) {
  const body = await readFile(join(here, path));
  const sizes = [];
  for (const [ending, pack] of Object.entries(packings)) {
    const packed = pack(body);
    sizes.push(`${(packed.length / 1024).toFixed(1)} kB ${ending}`);
    await writeFile(join(here, path + ending), packed);
  }
  console.log(`${basename(path).padEnd(24)} ${sizes.join("  ")}`);
}
const kept = new Set(["manifest.json", ...built.flatMap((path) => ["", ...Object.keys(packings)].map((ending) => basename(path) + ending))]);
for (const name of await readdir(out)) {
  if (!kept.has(name)) await rm(join(out, name), { recursive: true });
}
const written = join(out, "manifest.json");
await writeFile(`${written}.new`, `${JSON.stringify(manifest, null, 2)}\n`);
await rename(`${written}.new`, written);
