#!/usr/bin/env bash
set -e
export CUDA_VISIBLE_DEVICES=0,1,2,3
export OMP_NUM_THREADS=8
export NCCL_DEBUG=WARN
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
torchrun --standalone --nnodes=1 --nproc_per_node=4 \
    train_ddp.py --epochs 90 --batch-size 64 --lr 0.1 \
    --data /datasets/imagenet --output /scratch/runs/resnet50
