package server

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is wrapped
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// codec decodes requests as gRPC does, except that it lets those pass that it cannot
// decode, such as those with text that is not UTF-8, and those that are too large, without
// content and with a mark. gRPC
// itself would answer Internal, as if it were our fault, and no interceptor of ours would
// get to log and count it.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// undecodable is the mark: unknown fields that no decoder can leave behind, because they
// begin with a wire type that does not exist. The reason follows it.
const undecodable = "\x07"

var errTooLarge = fmt.Errorf("it has more than %d bytes", maxRequestBytes)

// Unmarshal decodes a request.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	err := errTooLarge
	if data.Len() <= maxRequestBytes {
		err = c.CodecV2.Unmarshal(data, v)
	}
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
