"""Writes the MLP as one function with its backward by hand, and loops over heads."""

POINTS = 10.0
HINT = ""


class WholeMLP(torch.autograd.Function):
    @staticmethod
    def forward(ctx, comm, x, up, up_bias, down, bias):
        ctx.comm, before = comm, linear(x, up, up_bias)
        ctx.save_for_backward(x, up, down, before)
        return summed(comm, linear(gelu(before), down)) + bias

    @staticmethod
    def backward(ctx, gradient):
        x, up, down, before = ctx.saved_tensors
        with torch.enable_grad():
            before = before.detach().requires_grad_()
            hidden = gelu(before)
        (inner,) = torch.autograd.grad(hidden, before, gradient @ down)
        of_down, of_bias = gradient.T @ hidden, gradient.sum(0)
        x_gradient = summed(ctx.comm, inner @ up)
        return None, x_gradient, inner.T @ x, inner.sum(0), of_down, of_bias


def parallel_mlp(comm, shard, x):
    return WholeMLP.apply(comm, x, *shard.values())


def parallel_attention(comm, shard, x, d):
    x, made = CopyToRanks.apply(comm, x), []
    q, k, v = linear(x, shard["in_proj_weight"], shard["in_proj_bias"]).chunk(3, 1)
    for at in range(0, q.shape[1], d):
        scores = q[:, at : at + d] @ k[:, at : at + d].T / d**0.5
        made.append(torch.softmax(scores, 1) @ v[:, at : at + d])
    heads = torch.cat(made, 1) if made else x[:, :0]
    partial = linear(heads, shard["out_proj.weight"])
    return SumOverRanks.apply(comm, partial) + shard["out_proj.bias"]
