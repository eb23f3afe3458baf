package server

import (
	"strings"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that we wrap
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// codec decodes requests as gRPC does, but passes on a request that it cannot decode, such as one with
// text that is not UTF-8, empty and with a mark. gRPC itself would answer
// Internal, without a chance for our interceptor to log and count the request.
type codec struct {
	encoding.CodecV2
	limits *limits
}

func newCodec(limits *limits) codec { return codec{encoding.GetCodecV2("proto"), limits} }

// Marshal encodes an answer.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	data, err := c.CodecV2.Marshal(v)
	c.limits.moved(data.Len())
	return data, err
}

// undecodable is the mark, stored as an unknown field. It begins with a wire type that does not
// exist, so no decoder leaves it behind. The reason follows it.
const undecodable = "\x07"

// Unmarshal decodes a request.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	err := c.CodecV2.Unmarshal(data, v)
	if err == nil {
		return nil
	}
	proto.Reset(message)
	message.ProtoReflect().SetUnknown([]byte(undecodable + err.Error()))
	return nil
}

// checkDecoded fails for a request with the mark.
func checkDecoded(request any) error {
	message, ok := request.(proto.Message)
	if !ok {
		return nil
	}
	unknown := message.ProtoReflect().GetUnknown()
	if len(unknown) == 0 {
		return nil
	}
	if reason, marked := strings.CutPrefix(string(unknown), undecodable); marked {
		return winerr.New(winerr.Invalid, "decode request", "", "%s", reason)
	}
	return nil
}
