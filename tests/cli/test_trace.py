"""paceline trace: the streams after each layer, and that one layer alone gives the same bits as in the whole."""
import cli

LAYERS, STREAMS, DIM = 10, 4, 128


class Trace(cli.Case):
    def test_a_layer_alone_is_the_layer_in_the_whole(self):
        ids = cli.ids_text([(i * 37 + 11) % 512 for i in range(53)])
        whole = self.folder / "whole"
        self.ok("trace", "-m", cli.TINY, "--ids", ids, "--out", whole)
        h, pre = (whole / "h.bf16").read_bytes(), (whole / "pre.f32").read_bytes()
        h_layer, pre_layer = 53 * STREAMS * DIM * 2, 53 * STREAMS * 4
        self.assertEqual(len(h), LAYERS * h_layer)
        self.assertEqual(len(pre), LAYERS * pre_layer)
        for layer in range(LAYERS):
            one = self.folder / f"layer{layer}"
            self.ok("trace", "-m", cli.TINY, "--ids", ids, "--out", one, "--layer", layer, "--h", whole / "h.bf16", "--pre",
                    whole / "pre.f32")
            self.assertEqual((one / "h.bf16").read_bytes(), h[layer * h_layer:(layer + 1) * h_layer], f"layer {layer}")
            self.assertEqual((one / "pre.f32").read_bytes(), pre[layer * pre_layer:(layer + 1) * pre_layer], f"layer {layer}")

    def test_longer_than_a_piece(self):
        """Several launches write into one file: the first positions are those of a short run."""
        ids = [(i * 29 + 5) % 8192 for i in range(300)]
        short, long = self.folder / "short", self.folder / "long"
        self.ok("trace", "--ids", cli.ids_text(ids[:40]), "--out", short)
        self.ok("trace", "--ids", cli.ids_text(ids), "--out", long, "--threads", 1)
        a, b = (short / "h.bf16").read_bytes(), (long / "h.bf16").read_bytes()
        row = STREAMS * 256 * 2
        self.assertEqual(len(b), LAYERS * 300 * row)
        for layer in range(LAYERS):
            self.assertEqual(a[layer * 40 * row:(layer + 1) * 40 * row], b[layer * 300 * row:(layer * 300 + 40) * row])

    def test_given_streams_of_the_wrong_size(self):
        h, pre = self.folder / "h", self.folder / "pre"
        h.write_bytes(bytes(LAYERS * STREAMS * DIM * 2))
        pre.write_bytes(bytes(LAYERS * STREAMS * 4))
        words = ["trace", "-m", cli.TINY, "--ids", "1", "--out", self.folder / "o", "--h", h, "--pre", pre, "--layer"]
        self.ok(*words, 0)
        self.fails(2, *words, LAYERS, says="--layer")
        pre.write_bytes(bytes(LAYERS * STREAMS * 4 - 1))
        self.fails(1, *words, 0, says=[str(pre), "160 bytes", "found 159"])
        h.write_bytes(b"")
        self.fails(1, *words, 0, says=[str(h), "found 0"])
        h.unlink()
        self.fails(1, *words, 0, says=str(h))

    def test_a_file_where_the_folder_should_be(self):
        (self.folder / "file").write_text("x")
        self.fails(1, "trace", "--ids", "1", "--out", self.folder / "file", says="file")


if __name__ == "__main__":
    cli.main()
