/** torch: what these stages use most, as `signature: what it does`. */
export const TORCH = `
torch.exp(input): e to the x
torch.exp2(input): 2 to the x
torch.log(input): natural logarithm
torch.sqrt(input): square root
torch.rsqrt(input): 1 over the square root
torch.abs(input): absolute value
torch.tanh(input)
torch.sigmoid(input)
torch.maximum(input, other): the larger, element by element
torch.minimum(input, other): the smaller, element by element
torch.max(input, dim, keepdim=False): values and indices
torch.amax(input, dim, keepdim=False): the maximum along a dimension
torch.amin(input, dim, keepdim=False): the minimum along a dimension
torch.sum(input, dim, keepdim=False): the sum along a dimension
torch.mean(input, dim, keepdim=False): the mean along a dimension
torch.var(input, dim, correction=1, keepdim=False): the variance
torch.logsumexp(input, dim, keepdim=False): log of the sum of exponentials
torch.softmax(input, dim): softmax along a dimension
torch.cumsum(input, dim): running sums
torch.argmax(input, dim=None, keepdim=False): where the maximum is
torch.topk(input, k, dim=-1): the k largest
torch.sort(input, dim=-1, descending=False): values and indices
torch.matmul(input, other): matrix product; also @
torch.einsum(equation, operands): sums of products by an equation such as "qk,kd->qd"
torch.where(condition, input, other): elements of input where true, else of other
torch.zeros(size, dtype=None, device=None)
torch.ones(size, dtype=None, device=None)
torch.full(size, fill_value, dtype=None, device=None)
torch.empty(size, dtype=None, device=None): not initialised
torch.zeros_like(input)
torch.ones_like(input)
torch.full_like(input, fill_value)
torch.empty_like(input): not initialised
torch.arange(start, end, step=1, dtype=None, device=None)
torch.tensor(data, dtype=None, device=None)
torch.cat(tensors, dim=0): one after the other
torch.stack(tensors, dim=0): along a new dimension
torch.split(tensor, size, dim=0): pieces of a size
torch.chunk(input, chunks, dim=0): so many pieces
torch.reshape(input, shape)
torch.transpose(input, dim0, dim1)
torch.permute(input, dims)
torch.flatten(input, start_dim=0)
torch.unsqueeze(input, dim)
torch.squeeze(input, dim)
torch.broadcast_to(input, shape)
torch.gather(input, dim, index)
torch.scatter(input, dim, index, src)
torch.index_select(input, dim, index)
torch.tril(input, diagonal=0): below and on the diagonal
torch.triu(input, diagonal=0): above and on the diagonal
torch.clamp(input, min=None, max=None)
torch.isnan(input)
torch.isinf(input)
torch.isfinite(input)
torch.finfo(dtype): largest, smallest, epsilon of a type
torch.no_grad(): nothing inside is recorded for gradients
torch.Tensor
torch.float16
torch.bfloat16
torch.float32
torch.float64
torch.int32
torch.int64
torch.bool
torch.inf
math.exp(x)
math.log(x)
math.sqrt(x)
math.ceil(x)
math.inf
`;
