"""What the files of a model's folder do to the start of the server."""
import json
import pathlib
import shutil
import tempfile

import serve


class Start(serve.unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        for f in pathlib.Path("models/nano").iterdir():
            shutil.copy(f, self.folder.name)
        self.path = pathlib.Path(self.folder.name, "generation_config.json")

    def tearDown(self):
        self.folder.cleanup()

    def say(self, text):
        self.path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")

    def refused(self):
        server = serve.Server("-m", self.folder.name, wait=False)
        try:
            self.assertEqual(server.process.wait(60), 1)
            return server.errors()
        finally:
            server.close()

    def test_a_wrong_file_stops_the_start(self):
        for text, words in (("{\"eos_token_id\": \"1\"}", ("eos_token_id: expected a token id", "found \"1\"")),
                            ("{\"eos_token_id\": [1, -2]}", ("eos_token_id: expected a token id", "found [1,-2]")),
                            ("{\"eos_token_id\": [1, 8192]}", ("eos_token_id: expected ids below", "found 8192")),
                            ("{\"temperature\": 2.5}", ("temperature: expected a number", "found 2.5")),
                            ("{\"top_p\": 0.5, \"top_p\": 0.5}", ("duplicate",)),
                            ("{\"top_p\": 0.5", ("not JSON",))):
            self.say(text)
            said = self.refused()
            self.assertIn("generation_config.json", said)
            for w in words:
                self.assertIn(w, said)

    def test_any_of_several_end_tokens_ends_a_reply(self):
        case = serve.CASES["raw_prose"]
        ids = case["greedy"]
        end = next(t for i, t in enumerate(ids) if i >= 3 and t not in ids[:i])
        cut = ids.index(end) + 1
        self.assertNotEqual(end, 1)
        ask = dict(temperature=0, max_tokens=len(ids))
        for eos, ends in ((1, False), ([1], False), ([1, end], True), ([end, 1, end], True), (end, True)):
            self.say({"eos_token_id": eos, "thinking": False})
            server = serve.Server("-m", self.folder.name)
            try:
                got = server.text(case["ids"], logprobs=0, **ask).json()
                past = server.text(case["ids"], **{**ask, "max_tokens": cut + 1}, ignore_eos=True).json()
                stopped = server.text(case["ids"], stop="never said", **ask).json()
            finally:
                server.close()
            self.assertEqual(past["usage"]["completion_tokens"], cut + 1)
            self.assertEqual(got["token_sha"], stopped["token_sha"])
            if ends:
                self.assertEqual(got["usage"]["completion_tokens"], cut)
                self.assertEqual(got["choices"][0]["finish_reason"], "stop")
                # the end token stands for no text
                self.assertEqual(len(got["choices"][0]["logprobs"]["tokens"]), cut - 1)
            else:
                self.assertGreater(got["usage"]["completion_tokens"], cut)


if __name__ == "__main__":
    serve.main()
