# node 0
NCCL_SOCKET_IFNAME=ens5 torchrun --nnodes=2 --node_rank=0 --nproc_per_node=8 --master_addr=10.0.3.11 --master_port=29501 train.py --bf16
# node 1
NCCL_SOCKET_IFNAME=ens5 torchrun --nnodes=2 --node_rank=1 --nproc_per_node=8 --master_addr=10.0.3.11 --master_port=29501 train.py --bf16
