package plugin

import (
	"context"
	"log/slog"
	"path"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

// logRequests logs what was asked, about which volume, and how it ended. Requests are never
// logged as a whole: they carry secrets. The mounter logs to the logger in its context.
func logRequests(log *slog.Logger) grpc.UnaryServerInterceptor {
	logger := logr.FromSlogHandler(log.Handler())
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		start := time.Now()
		response, err := handle(klog.NewContext(ctx, logger), request)
		attributes := []slog.Attr{
			slog.String("method", path.Base(info.FullMethod)),
			slog.String("code", status.Code(err).String()),
			slog.Duration("duration", time.Since(start)),
		}
		if about, ok := request.(interface{ GetVolumeId() string }); ok {
			attributes = append(attributes, slog.String("volume", about.GetVolumeId()))
		}
		level := slog.LevelInfo
		if err != nil {
			level = slog.LevelError
			attributes = append(attributes, slog.String("error", status.Convert(err).Message()))
		}
		log.LogAttrs(ctx, level, "Request", attributes...)
		return response, err
	}
}
