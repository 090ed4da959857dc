__global__ void forward(const float* x, const float* w, float* y, int count, int width) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) y[at] = x[at] * w[at % width];
}

__global__ void backward(const float* g, const float* x, const float* w, float* dx, float* dw, int rows, int width) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= width) return;
    float sum = 0;
    for (int i = 0; i < rows; ++i) {
        dx[i * width + at] = g[i * width + at] * w[at];
        sum += g[i * width + at] * x[i * width + at];
    }
    dw[at] = sum;
}

extern "C" void scale(const float* x, const float* w, float* y, int rows, int width, cudaStream_t stream) {
    forward<<<(rows * width + 127) / 128, 128, 0, stream>>>(x, w, y, rows * width, width);
}

extern "C" void scaleBackward(const float* g, const float* x, const float* w, float* dx, float* dw, int rows, int width,
                              cudaStream_t stream) {
    backward<<<(width + 127) / 128, 128, 0, stream>>>(g, x, w, dx, dw, rows, width);
}
