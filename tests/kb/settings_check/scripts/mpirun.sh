mpirun -np 16 -npernode 8 -H node1:8,node2:8 \
  -bind-to none -map-by slot \
  -x NCCL_DEBUG=INFO -x NCCL_SOCKET_IFNAME=^lo,docker0 -x NCCL_IB_HCA=mlx5 -x LD_LIBRARY_PATH -x PATH \
  -mca pml ob1 -mca btl ^openib -mca btl_tcp_if_include 10.1.0.0/16 \
  python train_hvd.py --batch-size 128 --fp16-allreduce
