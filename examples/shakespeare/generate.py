"""Prints what a trained repository makes of some words, by Transformers.

    PYTHON generate.py FOLDER TOKENIZER "ROMEO:"
"""
import sys

import torch
import transformers

TOKENS = 48


def main():
    folder, tokenizer_file, words = sys.argv[1:]
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=tokenizer_file)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    torch.manual_seed(0)
    ids = tokenizer(words, return_tensors="pt").input_ids
    made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=TOKENS, do_sample=True, temperature=0.7,
                          top_k=40, pad_token_id=0)
    print(tokenizer.decode(made[0]))


if __name__ == "__main__":
    main()
