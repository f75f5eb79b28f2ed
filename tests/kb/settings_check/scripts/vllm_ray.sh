# head
export VLLM_HOST_IP=192.168.50.21 GLOO_SOCKET_IFNAME=enp94s0f0 NCCL_SOCKET_IFNAME=enp94s0f0
ray start --head --port=6379 --node-ip-address=$VLLM_HOST_IP
# worker
export VLLM_HOST_IP=192.168.50.22 GLOO_SOCKET_IFNAME=enp94s0f0 NCCL_SOCKET_IFNAME=enp94s0f0
ray start --address=192.168.50.21:6379 --node-ip-address=$VLLM_HOST_IP
# then on the head
vllm serve Qwen/Qwen2.5-72B-Instruct --tensor-parallel-size 8 --pipeline-parallel-size 2 --gpu-memory-utilization 0.9
