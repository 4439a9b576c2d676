class Packed(torch.nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.a, self.b = torch.nn.Parameter(a), torch.nn.Parameter(b)
        self.register_buffer("both", None, persistent=False)
        self.made_of = None

    def forward(self, x):
        now = [(p.data_ptr(), p._version) for p in (self.a, self.b)]
        if self.made_of != now:  # the parameters changed, or moved
            self.both = torch.cat([self.a, self.b]).detach()
            self.made_of = now
        return F.linear(x, self.both)
