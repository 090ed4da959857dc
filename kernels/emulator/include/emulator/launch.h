// Kernel launches: what `<<<…>>>` was rewritten to, and the launch functions of the runtime API.
#pragma once

typedef struct EmulatorStream* cudaStream_t;
typedef struct EmulatorEvent* cudaEvent_t;

namespace emulator {

struct LaunchRequest {
  int line;
  const char* name;
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
  bool cooperative;
  void (*body)(void*);
  void* context;
  dim3 cluster = dim3(1, 1, 1);
};
int run(const LaunchRequest& request);  // a cudaError_t; also kept as the last error

// A literal 0 or NULL among the arguments of a launch: still converts to any pointer or number.
struct Zero {
  template <class T, class = std::enable_if_t<std::is_pointer<T>::value || std::is_arithmetic<T>::value>>
  constexpr operator T() const { return T(); }
};

template <class Kernel>
struct Launcher {
  Kernel kernel;
  LaunchRequest request;
  template <class... Arguments>
  void operator()(Arguments... arguments) {
    auto body = [&] { kernel(arguments...); };
    request.body = [](void* context) { (*static_cast<decltype(body)*>(context))(); };
    request.context = &body;
    run(request);
  }
};

template <class Kernel>
Launcher<Kernel> launch(Kernel kernel, int line, const char* name, dim3 grid, dim3 block, size_t shared = 0,
                        cudaStream_t stream = nullptr) {
  return {kernel, {line, name, grid, block, shared, stream, false, nullptr, nullptr}};
}

// A kernel that can be launched by its address with an array of pointers to arguments.
struct Kernel {
  const void* address;
  const char* name;
  void (*call)(const void* kernel, void** arguments);
  Kernel* next;
  template <class... P>
  Kernel(void (*function)(P...), const char* name_);
};
void add(Kernel* kernel);

template <class... P, size_t... I>
void call_with(void (*function)(P...), void** arguments, std::index_sequence<I...>) {
  function(*static_cast<std::remove_reference_t<P>*>(arguments[I])...);
  (void)arguments;
}
template <class... P>
Kernel::Kernel(void (*function)(P...), const char* name_)
    : address(reinterpret_cast<const void*>(function)), name(name_),
      call([](const void* kernel, void** arguments) {
        call_with(reinterpret_cast<void (*)(P...)>(const_cast<void*>(kernel)), arguments, std::index_sequence_for<P...>());
      }),
      next(nullptr) {
  add(this);
}
int launch_by_address(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream,
                      bool cooperative, int line);
template <class... P>
int launch_typed(void (*function)(P...), dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream,
                 bool cooperative, int line) {
  auto body = [&] { call_with(function, arguments, std::index_sequence_for<P...>()); };
  LaunchRequest request{line, "", grid, block, shared, stream, cooperative,
                        [](void* context) { (*static_cast<decltype(body)*>(context))(); }, &body};
  return run(request);
}

int allow_dynamic_shared(const char* kernel, int attribute, int bytes);

}  // namespace emulator
