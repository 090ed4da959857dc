// The primitives; cuda::pipeline is in <cuda/pipeline>.
#pragma once
#include "cuda_pipeline_primitives.h"
