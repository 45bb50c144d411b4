"""Has one side's whole cart replace the other's."""

POINTS = 7.0
HINT = "What one side added is lost"


class Cart(Answering):
    def on_client(self, request, call):
        copy = self.copies.get("cart", Copy((0, 0), ()))
        items = set(copy.value)
        if call.op == "add":
            items.add(call.value)
        elif call.op == "remove":
            items.discard(call.value)
        if call.op != "read":
            version = (copy.version[0] + 1, self.me)
            self.copies["cart"] = Copy(version, tuple(sorted(items)))
        yield Reply(request, list(copy.value))
