// What nvcc includes into every .cu file. The standard headers come first: no macro of ours may reach into them.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator/qualifiers.h"
#include "emulator/vector_types.h"
#include "emulator/execution.h"
#include "emulator/shared_memory.h"
#include "emulator/launch.h"
#include "emulator/warp.h"
#include "emulator/atomics.h"
#include "emulator/math.h"
#include "emulator/memory_access.h"
#include "emulator/host_api.h"
