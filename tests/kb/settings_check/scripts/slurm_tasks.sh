#!/bin/bash
#SBATCH -J vit-b16
#SBATCH -N 2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --mem=0
#SBATCH --partition=gpu
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 50000))
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1)
export WORLD_SIZE=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))
export NCCL_IB_TIMEOUT=22
export NCCL_IB_RETRY_CNT=7
export CUDA_DEVICE_MAX_CONNECTIONS=1
srun python -u main.py --batch-size 256 --dist-backend nccl --workers 8
