// See counting.h.
#ifdef EMULATOR_CHECK
#include "counting.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>
#include <unordered_map>

namespace emulator {

bool counting = false;

static const size_t kBlocks = 16, kWarps = 8, kRequests = 64, kOpen = 2048;  // looked at of a launch, a block, a place; at a time
static const unsigned kSector = 32, kBanks = 32, kWord = 4;

// One place in the program that accesses one array. accesses: of all lanes; sampled: of those in blocks that are looked at.
struct Place {
  const char* kernel;
  std::string array;
  uint32_t pc;
  unsigned size;
  bool shared, writes;
  uint64_t accesses = 0, sampled = 0;
  uint64_t lanes = 0, requests = 0, taken = 0, least = 0, bytes = 0;  // of the requests that were looked at
  // The warp that came last: its lanes follow one another. Null: it is not looked at.
  const Block* block = nullptr;
  unsigned warp = 0;
  uint64_t phase = 0;
  struct OfWarp* last = nullptr;
};
struct Request {
  const char* at[32];
  uint32_t lanes;
};
struct OfWarp {
  uint16_t seen[32] = {};
  std::vector<Request> requests;
};
struct OfBlock {
  std::map<std::pair<Place*, unsigned>, OfWarp> warps;
  std::unordered_map<const Array*, std::vector<bool>> read;  // by word
};
typedef std::tuple<uint32_t, const void*, const char*> Key;
static std::map<Key, Place> places;
static std::unordered_map<const Block*, OfBlock> open_blocks;
static std::map<std::string, uint64_t> distinct;  // bytes that blocks which are looked at have read, by array
static size_t open_warps;
static uint64_t phase = 1;  // counted over all blocks: what a place remembers holds within one

static bool sampled(const Block& block, unsigned warp) {
  return warp % std::max<size_t>(1, block.warps.size() / kWarps) == 0;
}

static Place& place_of(const void* array, const char* name, unsigned size, bool shared, bool writes, const void* pc) {
  static struct { Key key; Place* place; } recent[256];
  const char* kernel = worker->block->launch->request.name;
  const Key key{(uint32_t)(uintptr_t)pc, array, kernel};
  auto& entry = recent[((uintptr_t)pc ^ (uintptr_t)array >> 8) & 255];
  if (entry.place && entry.key == key) return *entry.place;
  const auto made = places.emplace(key, Place{kernel, name, (uint32_t)(uintptr_t)pc, size, shared, writes});
  entry = {key, &made.first->second};
  return *entry.place;
}

static OfWarp* warp_of(Place& place, const Block& block, unsigned warp) {
  if (!sampled(block, warp)) return nullptr;
  auto& warps = open_blocks[&block].warps;
  const auto known = warps.find({&place, warp});
  if (known != warps.end()) return &known->second;
  if (open_warps >= kOpen) return nullptr;
  ++open_warps;
  return &warps[{&place, warp}];
}

static void note(Place& place, const char* at) {
  const Fibre& me = *worker->fibre;
  const Block& block = *worker->block;
  ++place.accesses;
  if (!block.counted) return;
  ++place.sampled;
  if (place.phase != phase || place.block != &block || place.warp != me.warp) {
    place.phase = phase, place.block = &block, place.warp = me.warp;
    place.last = warp_of(place, block, me.warp);
  }
  if (!place.last) return;
  OfWarp& mine = *place.last;
  const size_t turn = mine.seen[me.lane];
  if (turn >= kRequests) return;
  ++mine.seen[me.lane];
  if (turn >= mine.requests.size()) mine.requests.push_back(Request{{}, 0});
  mine.requests[turn].at[me.lane] = at;
  mine.requests[turn].lanes |= 1u << me.lane;
}

void count_block(Block& block) { block.counted = block.number % std::max<size_t>(1, block.launch->blocks / kBlocks) == 0; }

void count_global(const Array& array, const char* at, unsigned size, bool writes, const void* pc) {
  const Block& block = *worker->block;
  note(place_of(&array, array.name.c_str(), size, false, writes, pc), at);
  if (writes || !block.counted) return;
  static struct { const Block* block; const Array* array; uint64_t phase; std::vector<bool>* read; } last;
  if (last.block != &block || last.array != &array || last.phase != phase) {
    last = {&block, &array, phase, &open_blocks[&block].read[&array]};
    last.read->resize(array.size / kWord + 2);
  }
  std::vector<bool>& read = *last.read;
  for (size_t word = (size_t)(at - array.data) / kWord, end = ((size_t)(at - array.data) + size - 1) / kWord; word <= end; ++word) read[word] = true;
}

void count_shared(const char* at, unsigned size, bool writes, const void* pc) {
  const Block& block = *worker->block;
  const long offset = at - block.arena;
  const SharedVariable* variable = nullptr;
  for (const SharedVariable* each : block.touched)
    if (offset >= each->offset && offset < each->offset + (long)each->size) variable = each;
  note(place_of(variable, variable ? variable->name : "", size, true, writes, pc), at);
}

// ------------------------------------------------------------------------------------------------- what requests take

static unsigned lanes_at(const Request& request, unsigned first, unsigned count, const char** at) {
  unsigned found = 0;
  for (unsigned lane = first; lane < first + count; ++lane)
    if (request.lanes >> lane & 1) at[found++] = request.at[lane];
  std::sort(at, at + found);
  return (unsigned)(std::unique(at, at + found) - at);
}

static void measure_global(Place& place, const Request& request) {
  const char* at[32];
  const unsigned count = lanes_at(request, 0, 32, at);
  uintptr_t last = 0;
  for (unsigned i = 0; i < count; ++i) {
    const uintptr_t sector = (uintptr_t)at[i] / kSector;
    place.taken += sector != last;
    last = sector;
  }
  place.bytes += count * place.size;
  place.least += (count * place.size + kSector - 1) / kSector;
}

// Accesses of 8 bytes are made by half a warp at a time, of 16 bytes by a quarter: words of one bank need a pass each.
static void measure_shared(Place& place, const Request& request) {
  const unsigned together = place.size <= kWord ? 32 : 32 * kWord / place.size;
  for (unsigned first = 0; first < 32; first += together) {
    const char* at[32];
    const unsigned count = lanes_at(request, first, together, at);
    unsigned banks[kBanks] = {}, passes = 0;
    uintptr_t last = 0;
    for (unsigned i = 0; i < count; ++i)
      for (uintptr_t word = (uintptr_t)at[i] / kWord, end = ((uintptr_t)at[i] + place.size - 1) / kWord; word <= end; ++word) {
        if (word != last) passes = std::max(passes, ++banks[word % kBanks]);
        last = word;
      }
    place.taken += passes;
    place.least += passes > 0;
  }
}

void count_phase(const Block& block) {
  ++phase;
  const auto found = open_blocks.find(&block);
  if (found == open_blocks.end()) return;
  for (auto& each : found->second.warps) {
    Place& place = *each.first.first;
    for (const Request& request : each.second.requests) {
      ++place.requests;
      place.lanes += (unsigned)__builtin_popcount(request.lanes);
      place.shared ? measure_shared(place, request) : measure_global(place, request);
    }
  }
  open_warps -= found->second.warps.size();
  found->second.warps.clear();
  if (block.live) return;
  for (const auto& each : found->second.read) distinct[each.first->name] += kWord * (uint64_t)std::count(each.second.begin(), each.second.end(), true);
  open_blocks.erase(found);
}

void write_counts(const char* path) {
  FILE* file = fopen(path, "w");
  if (!file) return;
  for (const auto& each : places) {
    const Place& p = each.second;
    if (!p.lanes) continue;
    fprintf(file, "{\"kernel\": \"");
    for (const char* c = p.kernel; *c; ++c) fputc(*c == '"' || *c == '\\' || (unsigned char)*c < 32 ? ' ' : *c, file);
    fprintf(file, "\", \"pc\": \"%#x\", \"array\": \"%s\", \"size\": %u, \"shared\": %s, \"writes\": %s, ", p.pc, p.array.c_str(), p.size, p.shared ? "true" : "false", p.writes ? "true" : "false");
    fprintf(file, "\"accesses\": %lu, \"sampled\": %lu, \"lanes\": %lu, \"requests\": %lu, \"taken\": %lu, \"least\": %lu, \"bytes\": %lu, \"distinct\": %lu}\n",
            (unsigned long)p.accesses, (unsigned long)p.sampled, (unsigned long)p.lanes, (unsigned long)p.requests, (unsigned long)p.taken, (unsigned long)p.least, (unsigned long)p.bytes,
            (unsigned long)(p.shared || p.writes ? 0 : distinct[p.array]));
  }
  fclose(file);
}

}  // namespace emulator
#endif  // EMULATOR_CHECK
