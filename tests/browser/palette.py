"""Pictures small enough for a repository: at most 256 colours, one byte a pixel. The browser counts the colours."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

from playwright.sync_api import Page

# The most frequent colours stay as they are: the flat grounds of a page differ by a few units. The rest, edges of letters,
# is grouped by the upper five bits, a group shown in its most frequent colour; groups for which there is no room take the
# nearest of those that are there.
_COUNT = """async (source) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const drawing = canvas.getContext('2d');
  drawing.drawImage(image, 0, 0);
  const pixels = new Uint32Array(drawing.getImageData(0, 0, image.width, image.height).data.buffer);
  const exact = new Map();
  for (const pixel of pixels) exact.set(pixel & 0xffffff, (exact.get(pixel & 0xffffff) ?? 0) + 1);
  const group = (c) => ((c & 0xf8) << 7) | ((c & 0xf800) >> 6) | ((c & 0xf80000) >> 19);
  const groups = new Map();
  for (const [colour, count] of exact) {
    const found = groups.get(group(colour)) ?? { colour, most: 0, count: 0 };
    if (count > found.most) Object.assign(found, { colour, most: count });
    found.count += count;
    groups.set(group(colour), found);
  }
  const frequent = [...exact].sort((a, b) => b[1] - a[1]).slice(0, 64).map(([colour]) => colour);
  const grouped = [...groups.values()].sort((a, b) => b.count - a.count).map((each) => each.colour);
  const palette = [...new Set([...frequent, ...grouped])].slice(0, 256);
  const parts = (c) => [c & 255, (c >> 8) & 255, (c >> 16) & 255];
  const nearest = (c) => {
    let best = 0, least = Infinity;
    palette.forEach((p, n) => {
      const distance = parts(p).reduce((sum, part, k) => sum + (part - parts(c)[k]) ** 2, 0);
      if (distance < least) [best, least] = [n, distance];
    });
    return best;
  };
  const places = new Map([...groups].map(([key, each]) => [key, nearest(each.colour)]));
  const own = new Map(frequent.map((colour, n) => [colour, n]));
  const indices = Uint8Array.from(pixels, (pixel) => own.get(pixel & 0xffffff) ?? places.get(group(pixel & 0xffffff)));
  let text = '';
  for (let at = 0; at < indices.length; at += 32768) text += String.fromCharCode(...indices.subarray(at, at + 32768));
  return { width: image.width, height: image.height, palette: palette.flatMap(parts), indices: btoa(text) };
}"""


def write(blank: Page, picture: bytes, path: Path) -> None:
    """Writes a PNG as one with a palette (RFC 2083, colour type 3). `blank`: a page of no site, to count in."""
    found = blank.evaluate(_COUNT, "data:image/png;base64," + base64.b64encode(picture).decode())
    width, height, indices = found["width"], found["height"], base64.b64decode(found["indices"])
    lines = b"".join(b"\0" + indices[start : start + width] for start in range(0, width * height, width))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", bytes(found["palette"])), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks))


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
