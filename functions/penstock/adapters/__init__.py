"""How the ports are kept on AWS: queues on SQS, flows on Step Functions, objects in S3, time and chance."""
