// Part of what cuda_runtime.h declares here.
#pragma once
#include "cuda_runtime.h"
