	.text
	.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
	.p2align	2                               ; -- Begin function _Z5apartf
	.type	_Z5apartf,@function
_Z5apartf:                              ; @_Z5apartf
.Lfunc_begin0:
	.file	0 "/tmp/f3" "kernel.hip" md5 0xfffa9921f1c687759b24f0fb6062d120
	.file	1 "kernel.hip"
	.loc	1 2 0                           ; kernel.hip:2:0
	.cfi_sections .debug_frame
	.cfi_startproc
; %bb.0:
	s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
	s_mov_b32 s6, 0x40400000
.Ltmp0:
	.loc	1 2 70 prologue_end             ; kernel.hip:2:70
	v_div_scale_f32 v1, s[4:5], s6, s6, v0
	v_rcp_f32_e32 v2, v1
	v_fma_f32 v3, -v1, v2, 1.0
	v_fmac_f32_e32 v2, v3, v2
	v_div_scale_f32 v3, vcc, v0, s6, v0
	v_mul_f32_e32 v4, v3, v2
	v_fma_f32 v5, -v1, v4, v3
	v_fmac_f32_e32 v4, v5, v2
	v_fma_f32 v1, -v1, v4, v3
	v_div_fmas_f32 v1, v1, v2, v4
	v_div_fixup_f32 v0, v1, s6, v0
	.loc	1 2 61 is_stmt 0                ; kernel.hip:2:61
	s_setpc_b64 s[30:31]
.Ltmp1:
.Lfunc_end0:
	.size	_Z5apartf, .Lfunc_end0-_Z5apartf
	.cfi_endproc
                                        ; -- End function
	.section	.AMDGPU.csdata
; Function info:
; codeLenInByte = 116
; NumSgprs: 36
; NumVgprs: 6
; NumAgprs: 0
; TotalNumVgprs: 6
; ScratchSize: 0
; MemoryBound: 0
	.text
	.protected	_Z7reversePKfPfi        ; -- Begin function _Z7reversePKfPfi
	.globl	_Z7reversePKfPfi
	.p2align	8
	.type	_Z7reversePKfPfi,@function
_Z7reversePKfPfi:                       ; @_Z7reversePKfPfi
.Lfunc_begin1:
	.loc	1 3 0 is_stmt 1                 ; kernel.hip:3:0
	.cfi_startproc
; %bb.0:
	s_add_u32 flat_scratch_lo, s6, s9
.Ltmp2:
	.file	2 "/usr/include/hip/amd_detail" "amd_hip_runtime.h" md5 0x16093af3b78d7538c31396a9fb8b635e
	.loc	2 263 69 prologue_end           ; /usr/include/hip/amd_detail/amd_hip_runtime.h:263:69
	s_load_dword s6, s[4:5], 0x10
	s_load_dwordx4 s[12:15], s[4:5], 0x0
	s_addc_u32 flat_scratch_hi, s7, 0
	s_add_u32 s0, s0, s9
.Ltmp3:
	.loc	1 5 28                          ; kernel.hip:5:28
	v_lshl_add_u32 v6, s8, 8, v0
	s_addc_u32 s1, s1, 0
	.loc	1 6 9                           ; kernel.hip:6:9
	s_waitcnt lgkmcnt(0)
	v_cmp_le_i32_e32 vcc, s6, v6
	s_mov_b32 s32, 0
	s_and_saveexec_b64 s[4:5], vcc
	s_xor_b64 s[4:5], exec, s[4:5]
; %bb.1:
	.loc	1 8 3                           ; kernel.hip:8:3
	v_ashrrev_i32_e32 v7, 31, v6
; %bb.2:
	.loc	1 0 3 is_stmt 0                 ; kernel.hip:0:3
	s_andn2_saveexec_b64 s[4:5], s[4:5]
	s_cbranch_execz .LBB1_4
; %bb.3:
	.loc	1 6 34 is_stmt 1                ; kernel.hip:6:34
	v_ashrrev_i32_e32 v7, 31, v6
	v_lshlrev_b64 v[2:3], 2, v[6:7]
	v_mov_b32_e32 v1, s13
	v_add_co_u32_e32 v2, vcc, s12, v2
	v_addc_co_u32_e32 v3, vcc, v1, v3, vcc
	global_load_dword v1, v[2:3], off
	v_lshlrev_b32_e32 v2, 2, v0
	.loc	1 6 32 is_stmt 0                ; kernel.hip:6:32
	s_waitcnt vmcnt(0)
	ds_write_b32 v2, v1
.LBB1_4:
	.loc	1 0 32                          ; kernel.hip:0:32
	s_or_b64 exec, exec, s[4:5]
.Ltmp4:
	.file	3 "/usr/include/hip/amd_detail" "amd_device_functions.h" md5 0x913bb197e0af7d58a97d587c496ee161
	.loc	3 890 9 is_stmt 1               ; /usr/include/hip/amd_detail/amd_device_functions.h:890:9
	s_waitcnt lgkmcnt(0)
	.loc	3 891 9                         ; /usr/include/hip/amd_detail/amd_device_functions.h:891:9
	s_barrier 
	.loc	3 892 9                         ; /usr/include/hip/amd_detail/amd_device_functions.h:892:9
	s_waitcnt lgkmcnt(0)
	v_lshlrev_b32_e32 v0, 2, v0
.Ltmp5:
	.loc	1 8 51                          ; kernel.hip:8:51
	s_load_dword s6, s[12:13], 0x0
	v_sub_u32_e32 v0, 0, v0
	.loc	1 8 18 is_stmt 0                ; kernel.hip:8:18
	ds_read_b32 v8, v0 offset:1020
	.loc	1 8 45                          ; kernel.hip:8:45
	s_getpc_b64 s[4:5]
	s_add_u32 s4, s4, _Z5apartf@rel32@lo+4
	s_addc_u32 s5, s5, _Z5apartf@rel32@hi+12
	s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v0, s6
	s_swappc_b64 s[30:31], s[4:5]
.Ltmp6:
	.loc	1 0 45                          ; kernel.hip:0:45
	v_lshlrev_b64 v[2:3], 2, v[6:7]
	v_mov_b32_e32 v1, s15
	v_add_co_u32_e32 v2, vcc, s14, v2
	.loc	1 8 43                          ; kernel.hip:8:43
	v_fmac_f32_e32 v0, 0.5, v8
	v_addc_co_u32_e32 v3, vcc, v1, v3, vcc
	.loc	1 8 8                           ; kernel.hip:8:8
	global_store_dword v[2:3], v0, off
	.loc	1 9 1 is_stmt 1                 ; kernel.hip:9:1
	s_endpgm
.Ltmp7:
	.section	.rodata,#alloc
	.p2align	6
	.amdhsa_kernel _Z7reversePKfPfi
		.amdhsa_group_segment_fixed_size 1024
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 20
		.amdhsa_user_sgpr_count 8
		.amdhsa_user_sgpr_private_segment_buffer 1
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_flat_scratch_init 1
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_system_sgpr_private_segment_wavefront_offset 0
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 0
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 9
		.amdhsa_next_free_sgpr 33
		.amdhsa_accum_offset 12
		.amdhsa_reserve_xnack_mask 1
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_tg_split 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.text
.Lfunc_end1:
	.size	_Z7reversePKfPfi, .Lfunc_end1-_Z7reversePKfPfi
	.cfi_endproc
                                        ; -- End function
	.section	.AMDGPU.csdata
; Kernel info:
; codeLenInByte = 228
; NumSgprs: 39
; NumVgprs: 9
; NumAgprs: 0
; TotalNumVgprs: 9
; ScratchSize: 0
; MemoryBound: 0
; FloatMode: 240
; IeeeMode: 1
; LDSByteSize: 1024 bytes/workgroup (compile time only)
; SGPRBlocks: 4
; VGPRBlocks: 1
; NumSGPRsForWavesPerEU: 39
; NumVGPRsForWavesPerEU: 9
; AccumOffset: 12
; Occupancy: 8
; WaveLimiterHint : 0
; COMPUTE_PGM_RSRC2:SCRATCH_EN: 0
; COMPUTE_PGM_RSRC2:USER_SGPR: 8
; COMPUTE_PGM_RSRC2:TRAP_HANDLER: 0
; COMPUTE_PGM_RSRC2:TGID_X_EN: 1
; COMPUTE_PGM_RSRC2:TGID_Y_EN: 0
; COMPUTE_PGM_RSRC2:TGID_Z_EN: 0
; COMPUTE_PGM_RSRC2:TIDIG_COMP_CNT: 0
; COMPUTE_PGM_RSRC3_GFX90A:ACCUM_OFFSET: 2
; COMPUTE_PGM_RSRC3_GFX90A:TG_SPLIT: 0
	.text
	.protected	_Z7spilledPKfPf         ; -- Begin function _Z7spilledPKfPf
	.globl	_Z7spilledPKfPf
	.p2align	8
	.type	_Z7spilledPKfPf,@function
_Z7spilledPKfPf:                        ; @_Z7spilledPKfPf
.Lfunc_begin2:
	.loc	1 10 0                          ; kernel.hip:10:0
	.cfi_startproc
; %bb.0:
	.loc	1 11 3 prologue_end             ; kernel.hip:11:3
	s_load_dwordx4 s[4:7], s[4:5], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_or_b32_e32 v2, 0x1000, v1
	v_or_b32_e32 v3, 0x2000, v1
	v_or_b32_e32 v4, 0x3000, v1
	v_or_b32_e32 v5, 0x4000, v1
	v_or_b32_e32 v6, 0x5000, v1
	v_or_b32_e32 v7, 0x6000, v1
	v_or_b32_e32 v8, 0x7000, v1
	.loc	1 12 40                         ; kernel.hip:12:40
	s_waitcnt lgkmcnt(0)
	global_load_dword v9, v1, s[4:5]
	global_load_dword v10, v2, s[4:5]
	global_load_dword v11, v3, s[4:5]
	global_load_dword v12, v4, s[4:5]
	global_load_dword v13, v5, s[4:5]
	global_load_dword v14, v6, s[4:5]
	global_load_dword v15, v7, s[4:5]
	global_load_dword v16, v8, s[4:5]
	v_or_b32_e32 v2, 0x8000, v1
	v_or_b32_e32 v3, 0x9000, v1
	v_or_b32_e32 v4, 0xa000, v1
	v_or_b32_e32 v5, 0xb000, v1
	v_or_b32_e32 v6, 0xc000, v1
	v_or_b32_e32 v7, 0xd000, v1
	v_or_b32_e32 v8, 0xe000, v1
	v_or_b32_e32 v17, 0xf000, v1
	global_load_dword v18, v2, s[4:5]
	global_load_dword v19, v3, s[4:5]
	global_load_dword v20, v4, s[4:5]
	global_load_dword v21, v5, s[4:5]
	global_load_dword v22, v6, s[4:5]
	global_load_dword v23, v7, s[4:5]
	global_load_dword v24, v8, s[4:5]
	global_load_dword v25, v17, s[4:5]
	v_or_b32_e32 v2, 0x10000, v1
	v_or_b32_e32 v3, 0x11000, v1
	v_or_b32_e32 v4, 0x12000, v1
	v_or_b32_e32 v5, 0x13000, v1
	v_or_b32_e32 v6, 0x14000, v1
	v_or_b32_e32 v7, 0x15000, v1
	global_load_dword v8, v2, s[4:5]
	global_load_dword v17, v3, s[4:5]
	global_load_dword v26, v4, s[4:5]
	global_load_dword v27, v5, s[4:5]
	global_load_dword v28, v6, s[4:5]
	global_load_dword v29, v7, s[4:5]
	v_or_b32_e32 v2, 0x16000, v1
	v_or_b32_e32 v3, 0x17000, v1
	global_load_dword v4, v3, s[4:5]
	global_load_dword v5, v2, s[4:5]
	v_or_b32_e32 v2, 0x18000, v1
	v_or_b32_e32 v3, 0x19000, v1
	global_load_dword v6, v2, s[4:5]
	global_load_dword v7, v3, s[4:5]
	v_or_b32_e32 v3, 0x1b000, v1
	v_or_b32_e32 v2, 0x1a000, v1
	global_load_dword v30, v3, s[4:5]
	global_load_dword v31, v2, s[4:5]
	s_add_u32 s0, s0, s9
	s_addc_u32 s1, s1, 0
	v_or_b32_e32 v2, 0x1c000, v1
	v_or_b32_e32 v3, 0x1d000, v1
	v_or_b32_e32 v32, 0x1e000, v1
	v_or_b32_e32 v33, 0x1f000, v1
	.loc	1 12 38 is_stmt 0               ; kernel.hip:12:38
	s_waitcnt vmcnt(26)
	buffer_store_dword v10, off, s[0:3], 0 offset:20
	buffer_store_dword v9, off, s[0:3], 0 offset:16
	s_waitcnt vmcnt(26)
	buffer_store_dword v12, off, s[0:3], 0 offset:28
	buffer_store_dword v11, off, s[0:3], 0 offset:24
	s_waitcnt vmcnt(26)
	buffer_store_dword v14, off, s[0:3], 0 offset:36
	buffer_store_dword v13, off, s[0:3], 0 offset:32
	s_waitcnt vmcnt(26)
	buffer_store_dword v16, off, s[0:3], 0 offset:44
	buffer_store_dword v15, off, s[0:3], 0 offset:40
	s_waitcnt vmcnt(26)
	buffer_store_dword v19, off, s[0:3], 0 offset:52
	buffer_store_dword v18, off, s[0:3], 0 offset:48
	s_waitcnt vmcnt(26)
	buffer_store_dword v21, off, s[0:3], 0 offset:60
	buffer_store_dword v20, off, s[0:3], 0 offset:56
	s_waitcnt vmcnt(27)
	buffer_store_dword v22, off, s[0:3], 0 offset:64
	s_waitcnt vmcnt(27)
	buffer_store_dword v23, off, s[0:3], 0 offset:68
	s_waitcnt vmcnt(27)
	buffer_store_dword v24, off, s[0:3], 0 offset:72
	s_waitcnt vmcnt(27)
	buffer_store_dword v25, off, s[0:3], 0 offset:76
	s_waitcnt vmcnt(27)
	buffer_store_dword v8, off, s[0:3], 0 offset:80
	s_waitcnt vmcnt(27)
	buffer_store_dword v17, off, s[0:3], 0 offset:84
	s_waitcnt vmcnt(26)
	buffer_store_dword v27, off, s[0:3], 0 offset:92
	buffer_store_dword v26, off, s[0:3], 0 offset:88
	s_waitcnt vmcnt(26)
	buffer_store_dword v29, off, s[0:3], 0 offset:100
	buffer_store_dword v28, off, s[0:3], 0 offset:96
	s_waitcnt vmcnt(27)
	buffer_store_dword v4, off, s[0:3], 0 offset:108
	s_waitcnt vmcnt(27)
	buffer_store_dword v5, off, s[0:3], 0 offset:104
	.loc	1 12 40                         ; kernel.hip:12:40
	global_load_dword v4, v2, s[4:5]
	s_nop 0
	global_load_dword v5, v3, s[4:5]
	global_load_dword v8, v32, s[4:5]
	global_load_dword v9, v33, s[4:5]
	.loc	1 12 38                         ; kernel.hip:12:38
	s_waitcnt vmcnt(30)
	buffer_store_dword v7, off, s[0:3], 0 offset:116
	buffer_store_dword v6, off, s[0:3], 0 offset:112
; (cut)
	buffer_load_dword v14, v3, s[0:3], 0 offen offset:36
	.loc	1 15 21                         ; kernel.hip:15:21
	s_add_i32 s4, s4, 10
	s_cmpk_eq_i32 s4, 0xd1
	v_add_u32_e32 v3, 40, v3
	.loc	1 15 37                         ; kernel.hip:15:37
	s_waitcnt vmcnt(10)
	v_fmac_f32_e32 v2, v15, v23
	s_waitcnt vmcnt(9)
	v_fmac_f32_e32 v2, v5, v24
	s_waitcnt vmcnt(5)
	v_fmac_f32_e32 v2, v6, v28
	v_fmac_f32_e32 v2, v7, v25
	v_fmac_f32_e32 v2, v8, v26
	s_waitcnt vmcnt(2)
	v_fmac_f32_e32 v2, v9, v31
	v_fmac_f32_e32 v2, v10, v27
	v_fmac_f32_e32 v2, v11, v29
	s_waitcnt vmcnt(1)
	v_fmac_f32_e32 v2, v12, v13
	s_waitcnt vmcnt(0)
	v_fmac_f32_e32 v2, v14, v30
	s_cbranch_scc0 .LBB2_1
; %bb.2:
	.loc	1 0 37                          ; kernel.hip:0:37
	v_lshlrev_b64 v[0:1], 2, v[0:1]
	v_mov_b32_e32 v3, s7
	v_add_co_u32_e32 v0, vcc, s6, v0
	v_addc_co_u32_e32 v1, vcc, v3, v1, vcc
	.loc	1 16 18 is_stmt 1               ; kernel.hip:16:18
	global_store_dword v[0:1], v2, off
	.loc	1 17 1                          ; kernel.hip:17:1
	s_endpgm
.Ltmp10:
	.section	.rodata,#alloc
	.p2align	6
	.amdhsa_kernel _Z7spilledPKfPf
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 816
		.amdhsa_kernarg_size 16
		.amdhsa_user_sgpr_count 8
		.amdhsa_user_sgpr_private_segment_buffer 1
		.amdhsa_user_sgpr_dispatch_ptr 0
		.amdhsa_user_sgpr_queue_ptr 0
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_dispatch_id 0
		.amdhsa_user_sgpr_flat_scratch_init 1
		.amdhsa_user_sgpr_private_segment_size 0
		.amdhsa_uses_dynamic_stack 0
		.amdhsa_system_sgpr_private_segment_wavefront_offset 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 0
		.amdhsa_system_sgpr_workgroup_id_z 0
		.amdhsa_system_sgpr_workgroup_info 0
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 64
		.amdhsa_next_free_sgpr 10
		.amdhsa_accum_offset 64
		.amdhsa_reserve_flat_scratch 0
		.amdhsa_reserve_xnack_mask 1
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_tg_split 0
		.amdhsa_exception_fp_ieee_invalid_op 0
		.amdhsa_exception_fp_denorm_src 0
		.amdhsa_exception_fp_ieee_div_zero 0
		.amdhsa_exception_fp_ieee_overflow 0
		.amdhsa_exception_fp_ieee_underflow 0
		.amdhsa_exception_fp_ieee_inexact 0
		.amdhsa_exception_int_div_zero 0
	.end_amdhsa_kernel
	.text
.Lfunc_end2:
	.size	_Z7spilledPKfPf, .Lfunc_end2-_Z7spilledPKfPf
	.cfi_endproc
                                        ; -- End function
	.section	.AMDGPU.csdata
; Kernel info:
; codeLenInByte = 5984
; NumSgprs: 12
; NumVgprs: 64
; NumAgprs: 0
; TotalNumVgprs: 64
; ScratchSize: 816
; MemoryBound: 0
; FloatMode: 240
; IeeeMode: 1
; LDSByteSize: 0 bytes/workgroup (compile time only)
; SGPRBlocks: 1
; VGPRBlocks: 7
; NumSGPRsForWavesPerEU: 12
; NumVGPRsForWavesPerEU: 64
; AccumOffset: 64
; Occupancy: 8
; WaveLimiterHint : 0
; COMPUTE_PGM_RSRC2:SCRATCH_EN: 1
; COMPUTE_PGM_RSRC2:USER_SGPR: 8
; COMPUTE_PGM_RSRC2:TRAP_HANDLER: 0
; COMPUTE_PGM_RSRC2:TGID_X_EN: 1
; COMPUTE_PGM_RSRC2:TGID_Y_EN: 0
; COMPUTE_PGM_RSRC2:TGID_Z_EN: 0
; COMPUTE_PGM_RSRC2:TIDIG_COMP_CNT: 0
; COMPUTE_PGM_RSRC3_GFX90A:ACCUM_OFFSET: 15
; COMPUTE_PGM_RSRC3_GFX90A:TG_SPLIT: 0
	.text
	.p2alignl 6, 3212836864
	.fill 256, 4, 3212836864
	.ident	"Debian clang version 15.0.6"
	.ident	"Debian clang version 15.0.5"
	.section	".note.GNU-stack"
	.addrsig
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         8
        .size:           8
        .value_kind:     global_buffer
      - .offset:         16
        .size:           4
        .value_kind:     by_value
    .group_segment_fixed_size: 1024
    .kernarg_segment_align: 8
    .kernarg_segment_size: 20
    .language:       OpenCL C
    .language_version:
      - 2
      - 0
    .max_flat_workgroup_size: 1024
    .name:           _Z7reversePKfPfi
    .private_segment_fixed_size: 0
    .sgpr_count:     39
    .sgpr_spill_count: 0
    .symbol:         _Z7reversePKfPfi.kd
    .uses_dynamic_stack: false
    .vgpr_count:     9
    .vgpr_spill_count: 0
    .wavefront_size: 64
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .address_space:  global
        .offset:         8
        .size:           8
        .value_kind:     global_buffer
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 16
    .language:       OpenCL C
    .language_version:
      - 2
      - 0
    .max_flat_workgroup_size: 1024
    .name:           _Z7spilledPKfPf
    .private_segment_fixed_size: 816
    .sgpr_count:     12
    .sgpr_spill_count: 0
    .symbol:         _Z7spilledPKfPf.kd
    .uses_dynamic_stack: false
    .vgpr_count:     64
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx90a
amdhsa.version:
  - 1
  - 1
...

	.end_amdgpu_metadata
