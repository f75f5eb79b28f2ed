export HF_HOME=/data/hf
export WANDB_PROJECT=sdxl-lora
export CUDA_VISIBLE_DEVICES=4,5,6,7
accelerate launch --multi_gpu --num_machines 1 --num_processes 4 --mixed_precision fp16 --main_process_port 29511 \
  train_text_to_image_lora.py --pretrained_model_name_or_path stabilityai/stable-diffusion-xl-base-1.0 \
  --resolution 1024 --train_batch_size 2 --gradient_accumulation_steps 4 --max_train_steps 15000
