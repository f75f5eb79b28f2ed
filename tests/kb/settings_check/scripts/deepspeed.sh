#!/bin/bash
cat > hostfile <<EOF
gpu-01 slots=8
gpu-02 slots=8
EOF
export NCCL_IB_GID_INDEX=3
export NCCL_IB_HCA=mlx5_bond_0
export NCCL_SOCKET_IFNAME=eth0
export DEEPSPEED_TIMEOUT=120
deepspeed --hostfile hostfile --num_nodes 2 --num_gpus 8 --master_addr gpu-01 --master_port 29600 \
  finetune.py --deepspeed ds_zero3.json --per_device_train_batch_size 1 --ddp_timeout 7200 --bf16 True
