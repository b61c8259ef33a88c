"""Makes a repository as Hugging Face has them: config.json, a byte-level BPE tokenizer of the text, random weights.

    PYTHON initial.py TEXT.txt FOLDER
"""
import pathlib
import shutil
import sys

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent


def tokenizer_of(text, vocabulary):
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.train([text], trainers.BpeTrainer(vocab_size=vocabulary, show_progress=False,
                                           initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made)


def main():
    text, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    config = transformers.AutoConfig.from_pretrained(shutil.copy(HERE / "config.json", folder))
    tokenizer_of(text, config.vocab_size).save_pretrained(folder)
    torch.manual_seed(0)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)


if __name__ == "__main__":
    main()
