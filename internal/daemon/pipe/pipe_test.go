package pipe_test

import "testing"

func TestListen_CarriesBytes(t *testing.T)                { kind.ListenCarriesBytes(t) }
func TestListen_SecondIsRefused(t *testing.T)             { kind.ListenSecondIsRefused(t) }
func TestListen_AgainAfterClose(t *testing.T)             { kind.ListenAgainAfterClose(t) }
func TestListen_OneOfManyWins(t *testing.T)               { kind.ListenOneOfManyWins(t) }
func TestPeerPID(t *testing.T)                            { kind.PeerPID(t) }
func TestPeerPID_ForeignConnection(t *testing.T)          { kind.PeerPIDForeignConnection(t) }
func TestValidateSecurityDescriptor_Default(t *testing.T) { kind.ValidateSecurityDescriptorDefault(t) }
func TestDescribe(t *testing.T)                           { kind.Describe(t) }
