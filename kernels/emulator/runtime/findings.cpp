#include "findings.h"

#include <csignal>
#include <cstdarg>
#include <atomic>

#include <fcntl.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "device_memory.h"

namespace emulator {

static const int kExitStatus = 86;
#ifdef EMULATOR_CHECK
static const char* const kPass = "check";
#else
static const char* const kPass = "plain";
#endif

std::string format(const char* pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

uint3 thread_of(unsigned linear) {
  const dim3 b = blockDim;
  return uint3{linear % b.x, linear / b.x % b.y, linear / b.x / b.y};
}
uint3 block_of(size_t number) {
  const dim3 g = gridDim;
  return uint3{(unsigned)(number % g.x), (unsigned)(number / g.x % g.y), (unsigned)(number / g.x / g.y)};
}

Site here(const void* pc, int line) {
  Site site;
  site.pc = pc;
  site.line = line;
  if (const Fibre* fibre = current_fibre()) {
    site.known = true;
    site.block = worker->block->index;
    site.thread = fibre->index;
  }
  return site;
}

static std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += (unsigned char)c < 32 ? ' ' : c;
  }
  return out + "\"";
}

static std::string written(const Site& site) {
  std::string text = format("{\"line\": %d", site.line);
  if (site.pc) text += format(", \"pc\": \"%#lx\"", (unsigned long)site.pc);
  for (size_t i = 0; i < site.callers.size(); ++i) text += format("%s\"%#lx\"", i ? ", " : ", \"callers\": [", (unsigned long)site.callers[i]);
  if (!site.callers.empty()) text += "]";
  if (site.known)
    text += format(", \"block\": [%u, %u, %u], \"thread\": [%u, %u, %u]", site.block.x, site.block.y, site.block.z, site.thread.x, site.thread.y, site.thread.z);
  return text + "}";
}

void found(const char* kind, const Site& site, const std::string& text, const char* other_access, const Site& other) {
  static std::atomic<bool> taken;
  while (taken.exchange(true)) usleep(1000);  // another worker is writing its finding and will end the process
  const char* running = worker && worker->block && worker->block->launch ? worker->block->launch->request.name : "";
  const char* kernel = site.kernel ? site.kernel : running;
  std::string line = std::string("{\"pass\": \"") + kPass + "\", \"kind\": " + quoted(kind) + ", \"kernel\": " + quoted(kernel) + ", \"site\": " + written(site) + ", \"text\": " + quoted(text);
  if (other_access) line += std::string(", \"other_access\": ") + quoted(other_access) + ", \"other\": " + written(other);
  line += "}\n";
  const char* path = getenv("EMULATOR_FINDINGS");
  const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : 2;
  if (file >= 0 && write(file, line.data(), line.size()) < 0) _exit(kExitStatus + 1);
  fflush(stdout);
  _exit(kExitStatus);
}
void found(const char* kind, const Site& site, const std::string& text) { found(kind, site, text, nullptr, Site()); }

void device_trap(const char* what, int line) { found("trap", here(nullptr, line), format("%s was reached", what)); }

// ---------------------------------------------------------------------------------------------------------- crashes

static const void* pc_of(void* context) {
#if defined(__x86_64__)
  return (const void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#else
  return (const void*)((ucontext_t*)context)->uc_mcontext.pc;
#endif
}

static void on_crash(int signal, siginfo_t* info, void* context) {
  const void* pc = pc_of(context);
  Fibre* fibre = current_fibre();
  const char* address = (const char*)info->si_addr;
  if (!fibre) _exit(kExitStatus + 1);  // a fault of the player's own
  if (signal == SIGFPE) found("arithmetic", here(pc, 0), "an integer division by zero; a GPU gives an unspecified value");
  if (signal == SIGILL || signal == SIGABRT) found("trap", here(pc, 0), "an instruction that stops the kernel was reached");
  if (address >= fibre->stack - 4096 && address < fibre->stack)
    found("stack_overflow", here(pc, 0), format("the thread's local memory is full: it has %zu KiB here", kStackSize >> 10));
  if (info->si_code > 0 && info->si_code != SEGV_MAPERR && info->si_code != SEGV_ACCERR)
    found("misaligned", here(pc, 0), "an access that is not aligned to its size (a float4 needs a multiple of 16), or through no possible address");
  found("out_of_bounds", here(pc, 0), "an access to " + describe(address, 1));
}

// Where the frames lead that lie on a fibre's stack from `frame` on: each begins with its caller's and the place it returns to.
static std::vector<const void*> callers_from(const Fibre& fibre, const void* frame) {
  std::vector<const void*> found;
  const char *at = (const char*)frame, *top = fibre.stack + kStackSize;
  while (at >= fibre.stack && at <= top - 2 * sizeof(void*) && !((uintptr_t)at & 7) && found.size() < 8) {
    const void* const* words = (const void* const*)at;
    if (!words[1]) break;
    found.push_back((const char*)words[1] - 1);
    if ((const char*)words[0] <= at) break;
    at = (const char*)words[0];
  }
  return found;
}

std::vector<const void*> callers_of_waiting(const Fibre& fibre) {
#if defined(__x86_64__)
  const void* const* saved = (const void* const*)fibre.stack_pointer;  // as emulator_switch leaves it
  std::vector<const void*> found = callers_from(fibre, saved[5]);
  found.insert(found.begin(), (const char*)saved[6] - 1);
  return found;
#else
  return callers_from(fibre, ((const void* const*)fibre.stack_pointer)[10]);
#endif
}

// The time may be up while the player works for the kernel, or between two fibres: then one that waits is named.
static void on_watchdog(int signal, siginfo_t*, void* context) {
  Site site = here(pc_of(context), 0);
#if defined(__x86_64__)
  const void* frame = (const void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RBP];
#else
  const void* frame = (const void*)((ucontext_t*)context)->uc_mcontext.regs[29];
#endif
  const Block* block = worker ? worker->block : nullptr;
  if (const Fibre* fibre = current_fibre()) {
    site.callers = callers_from(*fibre, frame);
  } else if (block) {
    for (const Fibre& each : block->fibres)
      if (each.state != State::Done && each.state != State::Running) {
        site.known = true, site.block = block->index, site.thread = each.index;
        site.callers = callers_of_waiting(each);
        break;
      }
  }
  found(signal == SIGALRM ? "out_of_time" : "still_running", site, "the kernel was still running when its time was up");
}

void prepare_thread() {
  stack_t stack;
  stack.ss_size = 256 << 10;
  stack.ss_sp = malloc(stack.ss_size);
  stack.ss_flags = 0;
  sigaltstack(&stack, nullptr);
}

void install_handlers() {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  action.sa_sigaction = on_crash;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
  action.sa_sigaction = on_watchdog;
  const struct { const char* limit; int signal; __itimer_which timer; } watchdogs[] = {{getenv("EMULATOR_CPU_MS"), SIGPROF, ITIMER_PROF}, {getenv("EMULATOR_WALL_MS"), SIGALRM, ITIMER_REAL}};
  for (const auto& each : watchdogs) {
    if (!each.limit || atol(each.limit) <= 0) continue;
    sigaction(each.signal, &action, nullptr);
    itimerval timer;
    timer.it_interval = {0, 0};
    timer.it_value = {atol(each.limit) / 1000, atol(each.limit) % 1000 * 1000};
    setitimer(each.timer, &timer, nullptr);
  }
}

}  // namespace emulator
