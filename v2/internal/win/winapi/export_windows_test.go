package winapi

// AlignedBuffer is alignedBuffer.
var AlignedBuffer = alignedBuffer
